import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import { VICTIM_CLASSES, type VictimClass } from '../../model/victim-class.ts'
import type { DurationMs, Mib } from '../../../protocol/units.ts'

/**
 * An eligible task with VRAM on the GPU under consideration. Its round and last swap-out refer to that GPU
 * only.
 */
export interface Candidate {
  readonly id: string
  readonly class: VictimClass
  /** It uses more VRAM than it requested. */
  readonly isAboveRequest: boolean
  readonly idleMs: DurationMs
  /** VRAM that its swap-out frees on this GPU; more than 0. */
  readonly mib: Mib
  readonly isSwappedThisRound: boolean
  /** Number of the decision (0 or more) that last chose it for this GPU's shortage; null if none did. */
  readonly lastSwapOut: number | null
}

/**
 * The levels, in the order in which they are used up (design/semantics.md 5): two of each class, first the
 * tasks not yet swapped in this round, then those already swapped. `VICTIM_LEVELS` has their names.
 * Within a level, tasks above their request are used up first.
 */
export function levelOf(candidate: Candidate): number {
  return 2 * VICTIM_CLASSES.indexOf(candidate.class) + Number(candidate.isSwappedThisRound)
}

/** The position in the order in which candidates are used up: level, then above the request. */
export function rankOf(candidate: Candidate): number {
  return 2 * levelOf(candidate) + Number(!candidate.isAboveRequest)
}

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
