/**
 * Swap storms, as marks in charts: times in which the cluster swapped too much. Of intervals of a minute, or
 * of the coarser ones that serve an older range, those in which at least as many swaps (out and in) ended as
 * there were GPU-minutes, and at least ten a minute on average; adjacent ones form one storm.
 */
import type { Instant } from '../../protocol/units.ts'
import { COLUMN } from './columns.ts'
import { SLOT_MS } from './retention.ts'
import { columnOf, type Row } from './row.ts'
import type { SeriesTable } from './table.ts'

export interface SwapStorm {
  readonly from: Instant
  readonly to: Instant
  readonly swaps: number
}

const MINUTE_MS = 60_000
const SWAPS_PER_GPU_MINUTE = 1
const SWAPS_PER_MINUTE = 10
/** A minute: one swap of a small cluster in ten seconds is not a storm. */
const FINEST_TIER = 1
/** Maximum number of storms reported, the latest. */
const MAX_STORMS = 100

export function swapStorms(
  cluster: SeriesTable,
  tier: number,
  from: Instant,
  to: Instant,
): readonly SwapStorm[] {
  const place = Math.max(FINEST_TIER, tier)
  const slotMs = SLOT_MS[place] as number
  const storms: SwapStorm[] = []
  for (const row of cluster.tiers[place]?.rows(from, to) ?? []) {
    const swaps = sumOf(row, COLUMN.swapOuts) + sumOf(row, COLUMN.swapIns)
    if (!isStorm(swaps, sumOf(row, COLUMN.known), slotMs)) continue
    const last = storms.at(-1)
    if (last?.to === row.at)
      storms[storms.length - 1] = { from: last.from, to: row.at + slotMs, swaps: last.swaps + swaps }
    else storms.push({ from: row.at, to: row.at + slotMs, swaps })
  }
  return storms.slice(-MAX_STORMS)
}

function isStorm(swaps: number, gpuMs: number, slotMs: number): boolean {
  return swaps * MINUTE_MS >= SWAPS_PER_GPU_MINUTE * gpuMs && swaps * MINUTE_MS >= SWAPS_PER_MINUTE * slotMs
}

/** The cluster's table has one scope. */
function sumOf(row: Row, column: number): number {
  const values = columnOf(row, column)
  return typeof values === 'number' ? values : (values[0] ?? 0)
}
