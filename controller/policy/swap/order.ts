import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import type { VictimClass } from './rounds.ts'
import type { DurationMs, Mib } from '../../../protocol/units.ts'

/**
 * An eligible task with VRAM on the GPU under consideration. Its round and last swap-out refer to that GPU
 * only.
 */
export interface Candidate {
  readonly id: string
  readonly isP0: boolean
  readonly idleMs: DurationMs
  /** What its swap-out frees on this GPU; more than 0. */
  readonly mib: Mib
  readonly isSwappedThisRound: boolean
  /** Number of the decision (0 or more) that last chose it for this GPU's shortage; null if none did. */
  readonly lastSwapOut: number | null
}

export function classOf(candidate: Candidate): VictimClass {
  return candidate.isP0 ? 'p0' : 'non_p0'
}

/**
 * The levels, in the order in which they are used up (design/semantics.md 5).
 * 0. Non-P0, not yet swapped in this round.
 * 1. Non-P0, already swapped.
 * 2. P0, not yet swapped in this round.
 * 3. P0, already swapped.
 */
export function levelOf(candidate: Candidate): 0 | 1 | 2 | 3 {
  if (candidate.isP0) return candidate.isSwappedThisRound ? 3 : 2
  return candidate.isSwappedThisRound ? 1 : 0
}

/** Number of levels. */
export const LEVELS = 4

/**
 * The decision that last swapped it out; never swapped out counts as oldest. Equal ages form one tie block
 * (choice 3).
 */
export function swapOutAge(candidate: Candidate): number {
  return candidate.lastSwapOut ?? -1
}

/**
 * Order in which tasks are tried when a subset is sought.
 * 1. More MiB.
 * 2. Longer idle.
 * 3. Task id, so that the order is total.
 */
export const byLargestFirst = firstDifference<Candidate>(
  (a, b) => b.mib - a.mib,
  (a, b) => b.idleMs - a.idleMs,
  (a, b) => byCodeUnits(a.id, b.id),
)

/**
 * Order in which the victims of one level are named, and so leave.
 * 1. Older last swap-out; never swapped out is oldest.
 * 2. Task id, so that the order is total.
 */
export const byOldestSwapOut = firstDifference<Candidate>(
  (a, b) => swapOutAge(a) - swapOutAge(b),
  (a, b) => byCodeUnits(a.id, b.id),
)
