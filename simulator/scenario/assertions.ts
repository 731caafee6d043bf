/**
 * What a scenario asserts about its run: names only. Who checks them: simulator/check. `always`: after every event. `eventually`: once, in time.
 * `sometimes`: happened at least once, so that no scenario passes by doing nothing. `final`: of the result.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { choice, duration, list, nullable, numberFrom, optional, record, required, textLike, type ValueOf } from './rule.ts'

export const ALWAYS_NAMES = [
  'single_run',
  'resident_within_capacity',
  'noswap_never_swapped',
  'fairness_bound',
  'commit_limit',
  'idle_rule',
  'p0_rule',
  'group_isolation',
  'reserve_kept',
] as const
export const EVENTUALLY_NAMES = ['every_feasible_task_runs', 'all_tasks_finish'] as const
export const SOMETIMES_NAMES = ['swap_out', 'swap_in', 'p0_preempts_p0', 'task_waits', 'reservation', 'multi_gpu_placed'] as const

export type AlwaysName = (typeof ALWAYS_NAMES)[number]
export type EventuallyName = (typeof EVENTUALLY_NAMES)[number]
export type SometimesName = (typeof SOMETIMES_NAMES)[number]

export interface Assertions {
  readonly always: readonly AlwaysName[]
  readonly eventually: readonly EventuallyAssertion[]
  readonly sometimes: readonly SometimesName[]
  readonly final: readonly FinalAssertion[]
}

export interface EventuallyAssertion {
  readonly that: EventuallyName
  /** From the instant at which the last fault has healed; without faults, from the start. */
  readonly after: 'heal'
  /** Null: by the end of the run. */
  readonly withinMs: DurationMs | null
}

/** Bounds on a number of the result, inclusive; null does not bound. At least one is set. */
export interface FinalAssertion {
  /** Dotted path into the result's metrics: `queue_wait_s.p99`. */
  readonly metric: string
  readonly min: number | null
  readonly max: number | null
  readonly equals: number | null
}

const MAX_ASSERTIONS = 1000
const ONE_YEAR_MS = 31_536_000_000
const LARGEST = Number.MAX_SAFE_INTEGER

const eventuallyRule = record({
  that: required(choice(...EVENTUALLY_NAMES), 'What has to become true.'),
  after: optional(choice('heal'), 'heal', 'heal: when the last fault is over; without faults, the start.'),
  within: optional(nullable(duration(0, ONE_YEAR_MS)), null, 'How long it may take; null is until the end of the run.'),
})

const bound = nullable(numberFrom(-LARGEST, LARGEST))
const finalRule = record(
  {
    metric: required(
      textLike(/^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/, 'a path into the metrics of the result (queue_wait_s.p99)', 128),
      'Which number.',
    ),
    min: optional(bound, null, 'It must not be below.'),
    max: optional(bound, null, 'It must not be above.'),
    equals: optional(bound, null, 'It must be exactly this.'),
  },
  {
    check: ({ min, max, equals }, refuse) => {
      if (min === null && max === null && equals === null) refuse(null, 'needs at least one of min, max, equals')
      if (min !== null && max !== null && max < min) refuse('max', 'must not be below min')
    },
  },
)

export const assertRule = record({
  always: optional(list(choice(...ALWAYS_NAMES), 0, MAX_ASSERTIONS), [], 'Holds after every event.'),
  eventually: optional(list(eventuallyRule, 0, MAX_ASSERTIONS), [], 'Becomes true in time.'),
  sometimes: optional(list(choice(...SOMETIMES_NAMES), 0, MAX_ASSERTIONS), [], 'Happens at least once.'),
  final: optional(list(finalRule, 0, MAX_ASSERTIONS), [], 'Bounds on the result.'),
})

export function assertionsOf({ always, eventually, sometimes, final }: ValueOf<typeof assertRule>): Assertions {
  return { always, sometimes, final, eventually: eventually.map(({ that, after, within }) => ({ that, after, withinMs: within })) }
}
