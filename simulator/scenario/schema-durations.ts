/** Rules for durations and GPU activity in a workload: fixed values, or distributions to draw from. */
import { ACTIVITY_MODELS } from '../trace/activity.ts'
import {
  byKey,
  choice,
  choiceOf,
  dictionary,
  duration,
  numberAbove,
  numberFrom,
  optional,
  record,
  required,
  scalarOr,
} from '../document/rule.ts'

/** 100 years. */
export const MAX_TIME_MS = 3_153_600_000_000
/** 10 years of one task. */
export const MAX_WORK_MS = 315_360_000_000
export const MAX_SIGMA = 5
export const MAX_WEIGHT = 1_000_000_000

export const workTime = duration(1, MAX_WORK_MS)
export const weight = numberAbove(0, MAX_WEIGHT)

const uniformTime = record(
  { min: required(workTime, 'Minimum.'), max: required(workTime, 'Maximum.') },
  { check: refuseFallingBounds },
)
const lognormalTime = record({
  median: required(workTime, 'Median.'),
  sigma: required(numberFrom(0, MAX_SIGMA), 'Standard deviation of the logarithm.'),
})
const timeWeights = dictionary(
  /^[1-9]\d{0,11}(ms|s|m|h|d)$/,
  'a time from 1ms on, with its unit',
  weight,
  1,
  1000,
)
export const durationRule = scalarOr(
  workTime,
  byKey({
    uniform: record({ uniform: required(uniformTime, 'Uniform between the two.') }),
    exponential: record({
      exponential: required(record({ mean: required(workTime, 'Mean.') }), 'Exponential.'),
    }),
    lognormal: record({ lognormal: required(lognormalTime, 'Log-normal.') }),
    choice: record({
      choice: required(timeWeights, 'Each value with a probability in proportion to its weight.'),
    }),
  }),
)

export const activity = scalarOr(
  choiceOf(ACTIVITY_MODELS),
  record({
    busy: required(durationRule, 'Duration of a busy run.'),
    idle: required(durationRule, 'Duration of an idle run.'),
    first: optional(
      choice('busy', 'idle'),
      'busy',
      'Initial state; a task that begins idle uses its GPU for 1 ms first.',
    ),
  }),
)

export function refuseFallingBounds(
  { min, max }: { readonly min: number; readonly max: number | null },
  refuse: (field: string | null, detail: string) => void,
): void {
  if (max !== null && max < min) refuse('max', 'must not be below min')
}
