import type { TaskSpec } from '../../protocol/task.ts'

/**
 * The classes of victims, in the order in which they are used up. Rounds are separate for each of them, on
 * each GPU (specification 8, rules 3 and 4): a task with `keep_warm` is the last victim of its class, and is
 * compared only with others that are kept warm.
 */
export const VICTIM_CLASSES = ['non_p0', 'non_p0_warm', 'p0', 'p0_warm'] as const
export type VictimClass = (typeof VICTIM_CLASSES)[number]

export function victimClassOf({ priority, keepWarm }: Pick<TaskSpec, 'priority' | 'keepWarm'>): VictimClass {
  if (priority === 0) return keepWarm === true ? 'p0_warm' : 'p0'
  return keepWarm === true ? 'non_p0_warm' : 'non_p0'
}

/** The fields of the record of a GPU that hold the number of each round. */
export const ROUND_FIELDS = {
  non_p0: 'roundNonP0',
  non_p0_warm: 'roundNonP0Warm',
  p0: 'roundP0',
  p0_warm: 'roundP0Warm',
} as const satisfies Record<VictimClass, string>
