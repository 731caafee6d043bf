/** Derives from a choice of `victims.ts` the rule by which each victim was chosen, for explanations. */
import type { Candidate } from './order.ts'
import { levelOf } from './order.ts'
import { totalOf } from './subset.ts'
import type { Shortage, Victim } from './victims.ts'

/**
 * Rule 2: the whole level was needed. Rule 3: of a level with a surplus, the longest not swapped that move
 * the least VRAM.
 */
export type ChoiceRule = 'whole_level' | 'oldest_then_fewest_bytes'

/** By task id. */
export function choiceRules(
  shortages: readonly Shortage[],
  victims: readonly Victim[],
): ReadonlyMap<string, ChoiceRule> {
  const rules = new Map<string, ChoiceRule>()
  for (const shortage of [...shortages].sort((a, b) => a.gpu - b.gpu)) {
    const ofEarlier = (candidate: Candidate) => rules.has(candidate.id)
    let missingMib = shortage.missingMib - totalOf(shortage.candidates.filter(ofEarlier))
    const open = shortage.candidates.filter((candidate) => !ofEarlier(candidate))
    const chosen = new Set(victims.filter(({ gpu }) => gpu === shortage.gpu).map(({ id }) => id))
    for (const level of [0, 1, 2, 3] as const) {
      const members = open.filter((candidate) => levelOf(candidate) === level)
      const taken = members.filter(({ id }) => chosen.has(id))
      const rule: ChoiceRule = totalOf(members) <= missingMib ? 'whole_level' : 'oldest_then_fewest_bytes'
      for (const { id } of taken) rules.set(id, rule)
      missingMib -= totalOf(taken)
    }
  }
  return rules
}
