/**
 * Retention of series, in time and memory. Bytes are the actual limit; rows limit how far back a small
 * cluster reaches.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { TierLimits } from './tier.ts'

export type TableKind = 'cluster' | 'group' | 'node' | 'gpu'
export const TABLE_KINDS: readonly TableKind[] = ['cluster', 'group', 'node', 'gpu']

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR
const MIB = 1024 * 1024

/** Finest first; each is a multiple of the previous one. */
const RESOLUTIONS: readonly { readonly slotMs: DurationMs; readonly keptMs: DurationMs }[] = [
  { slotMs: 10 * SECOND, keptMs: 6 * HOUR },
  { slotMs: 60 * SECOND, keptMs: 3 * DAY },
  { slotMs: 600 * SECOND, keptMs: 42 * DAY },
  { slotMs: HOUR, keptMs: 400 * DAY },
]

export const SLOT_MS: readonly DurationMs[] = RESOLUTIONS.map(({ slotMs }) => slotMs)
export const BASE_SLOT_MS: DurationMs = SLOT_MS[0] as DurationMs

/** MiB by table and resolution: 234 in total. */
const BUDGETS_MIB: Readonly<Record<TableKind, readonly number[]>> = {
  cluster: [2, 3, 3, 4],
  group: [4, 6, 8, 16],
  node: [16, 16, 24, 32],
  gpu: [12, 12, 16, 60],
}

/** Scopes beyond this number are not sampled. */
export const MAX_SCOPES: Readonly<Record<TableKind, number>> = {
  cluster: 1,
  group: 128,
  node: 4_096,
  gpu: 32_768,
}

export function limitsOf(kind: TableKind): readonly TierLimits[] {
  return RESOLUTIONS.map(({ slotMs, keptMs }, place) => ({
    slotMs,
    maxRows: keptMs / slotMs,
    maxBytes: (BUDGETS_MIB[kind][place] as number) * MIB,
  }))
}
