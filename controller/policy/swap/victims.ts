import { byOldestSwapOut, rankOf, swapOutAge } from './order.ts'
import { fewestBytesCovering, totalOf } from './subset.ts'
import type { Candidate } from './order.ts'
import type { VictimClass } from '../../model/victim-class.ts'
import type { Mib } from '../../../protocol/units.ts'
import type { ChoiceRule } from '../../model/decision.ts'

export type { Candidate } from './order.ts'
export type { VictimClass } from '../../model/victim-class.ts'

/** The shortage of one GPU, and the eligible tasks with VRAM on it, in any order. */
export interface Shortage {
  /** Index of the GPU in its node; at most one shortage each. */
  readonly gpu: number
  readonly missingMib: Mib
  readonly candidates: readonly Candidate[]
}

export interface Victim {
  readonly id: string
  /** The GPU whose shortage chose it: there it is marked and counted. */
  readonly gpu: number
  readonly class: VictimClass
  /**
   * Rule 2: the whole level was needed. Rule 3: of a level with a surplus, the longest not swapped that move
   * the least VRAM.
   */
  readonly rule: ChoiceRule
}

export interface ClosedRound {
  readonly gpu: number
  readonly class: VictimClass
}

export interface CoveredChoice {
  readonly covered: true
  readonly victims: readonly Victim[]
  readonly closedRounds: readonly ClosedRound[]
}

/** Replaces the choice of the rules for the decision with this number. */
export type VictimPolicy = (swapOut: {
  readonly decision: number
  /** The task that needs the VRAM. */
  readonly taskId: string
  readonly nodeId: string
  readonly choice: CoveredChoice
  readonly shortages: readonly Shortage[]
}) => CoveredChoice

/** The policy of every controller outside such simulations as replace a victim. */
export const BY_RULES: VictimPolicy = ({ choice }) => choice

/**
 * `covered: false` names the first GPU, by index, whose candidates together do not cover its shortage:
 * nothing is swapped out.
 */
export type VictimChoice =
  | CoveredChoice
  | { readonly covered: false; readonly gpu: number; readonly haveMib: Mib; readonly needMib: Mib }

/**
 * Which tasks leave VRAM so that every short GPU of a node is covered (specification 8, rules 3 to 5;
 * design/semantics.md 5, "Choice").
 * 1. If all candidates together do not cover some GPU's shortage, none leaves.
 * 2. A level that does not exceed the remaining shortage leaves whole; then the next. Tasks above their
 *    request count as a level before the others of theirs (design/serving.md 4).
 * 3. A level that exceeds it gives its oldest tie blocks, as few as cover, and of these tasks the subset that
 *    moves the least VRAM.
 * 4. Victims of an earlier level stay chosen whatever later levels give.
 * 5. A victim already swapped in this round closes the round of its class (`closedRounds`; rounds.ts applies
 *    it). GPUs are served by index. A victim counts on every GPU it uses, and is chosen once.
 *
 * `collect` is for the node's collector: rule 1 does not apply, and `covered` is always true; the victims,
 * possibly none, are those to take now. They cover unless all eligible tasks are among them.
 */
export function chooseVictims(
  shortages: readonly Shortage[],
  mode: 'cover' | 'collect' = 'cover',
): VictimChoice {
  const byIndex = shortages.length > 1 ? [...shortages].sort((a, b) => a.gpu - b.gpu) : shortages
  if (mode === 'cover') {
    for (const { gpu, missingMib, candidates } of byIndex) {
      const haveMib = totalOf(candidates)
      if (haveMib < missingMib) return { covered: false, gpu, haveMib, needMib: missingMib }
    }
  }
  const victims: Victim[] = []
  const closedRounds: ClosedRound[] = []
  for (const shortage of byIndex) coverOneGpu(shortage, victims, closedRounds)
  return { covered: true, victims, closedRounds }
}

/** Adds this GPU's victims, and the rounds they close, to those of the GPUs before it. */
function coverOneGpu(shortage: Shortage, victims: Victim[], closedRounds: ClosedRound[]): void {
  const { candidates } = shortage
  const leaving = victims.length === 0 ? null : new Set(victims.map((victim) => victim.id))
  let missingMib = shortage.missingMib
  if (leaving !== null)
    for (const candidate of candidates) if (leaving.has(candidate.id)) missingMib -= candidate.mib
  let closed: VictimClass | null = null
  const ranks = candidates.map(rankOf)
  let rank = nextRank(ranks, -1)
  for (; rank < Infinity && missingMib > 0; rank = nextRank(ranks, rank)) {
    const offered: Candidate[] = []
    for (let at = 0; at < candidates.length; at++) {
      const candidate = candidates[at] as Candidate
      if (ranks[at] === rank && leaving?.has(candidate.id) !== true) offered.push(candidate)
    }
    const { rule, taken } = takeFromLevel(offered, missingMib)
    for (const candidate of taken) {
      missingMib -= candidate.mib
      victims.push({ id: candidate.id, gpu: shortage.gpu, class: candidate.class, rule })
    }
    const [first] = taken
    if (first?.isSwappedThisRound !== true || first.class === closed) continue
    closed = first.class
    closedRounds.push({ gpu: shortage.gpu, class: closed })
  }
}

/** The lowest of these ranks that is above `rank`; Infinity if none is. */
function nextRank(ranks: readonly number[], rank: number): number {
  let next = Infinity
  for (const other of ranks) if (other > rank && other < next) next = other
  return next
}

/** Rules 2 and 3. */
function takeFromLevel(
  level: readonly Candidate[],
  missingMib: Mib,
): { readonly rule: ChoiceRule; readonly taken: readonly Candidate[] } {
  const isTakenWhole = totalOf(level) <= missingMib
  const taken = isTakenWhole
    ? level
    : fewestBytesCovering(oldestBlocksCovering(level, missingMib), missingMib)
  return {
    rule: isTakenWhole ? 'whole_level' : 'oldest_then_fewest_bytes',
    taken: taken.length > 1 ? [...taken].sort(byOldestSwapOut) : taken,
  }
}

/**
 * The tasks of the fewest whole tie blocks that cover, oldest swap-out first. Throws if the level does not
 * cover.
 */
function oldestBlocksCovering(level: readonly Candidate[], missingMib: Mib): readonly Candidate[] {
  let blockAge = -1
  while (blockAge < Infinity) {
    let reachedMib = 0
    let nextAge = Infinity
    for (const candidate of level) {
      const age = swapOutAge(candidate)
      if (age <= blockAge) reachedMib += candidate.mib
      else if (age < nextAge) nextAge = age
    }
    if (reachedMib >= missingMib) return level.filter((candidate) => swapOutAge(candidate) <= blockAge)
    blockAge = nextAge
  }
  throw new Error(`broken invariant: a level shall cover ${missingMib} MiB`)
}
