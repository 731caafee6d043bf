/**
 * The names of the assertions a scenario can make about its run; `simulator/check` evaluates them. `always`:
 * after every event. `eventually`: once, within a time limit. `sometimes`: at least once, so that a scenario
 * cannot pass by doing nothing. `final`: on the result.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { METRIC_PATHS } from './metrics.ts'
import {
  choice,
  choiceOf,
  duration,
  list,
  nullable,
  numberFrom,
  optional,
  record,
  required,
  scalarOr,
  type ValueOf,
} from '../document/rule.ts'

/** Each rule has its own checker, which derives its state from events and from the servers' attempts. */
const ALWAYS = {
  single_run: 'A task runs in one place at a time.',
  resident_within_capacity:
    'Resident and swapping tasks fit in the physical VRAM of each GPU; swapped-out tasks fit in host memory.',
  noswap_never_swapped: 'No task with noswap 1 is ever swapped out.',
  fairness_bound:
    'Swap-outs of comparable tasks differ by at most 2 over any window, and by at most 1 from ' +
    'the start of a round.',
  victim_choice:
    'Victims follow the swap-out order: whole levels first, then the tasks not swapped for ' +
    'longest that move the fewest bytes.',
  commit_limit: 'No placement takes a GPU beyond its commit limit, except that of a noswap task.',
  idle_rule:
    'A swapped-out task was idle for the idle period or resident for longer than max_residency_seconds.',
  p0_rule: 'A P0 task is swapped out only for a P0 task.',
  group_isolation:
    'A task is placed only on nodes of its target groups; a task without target groups only on ' +
    'nodes without groups.',
  reserve_kept: 'No placement uses the safety reserve of a GPU.',
  admission_rules:
    'A placement has the requested number of GPUs, an open node, a free task slot and exclusive ' +
    'GPUs if requested, and starves no other task.',
  event_chain: 'Event numbers have no gaps, times never decrease, and a cause precedes its effects.',
  finals_never_change: 'A final task has no further events, and attempt numbers only increase.',
  acknowledged_never_lost:
    'A task whose submission was acknowledged is known to every later controller until it has ended.',
  configuration_kept: 'A controller starts with the configuration that was last made durable.',
  store_behind_noticed:
    'A controller whose store lacks what a node has heard of raises STORE_BEHIND within two ' +
    'heartbeats, and places nothing while most nodes say so, in recovery, or while nodes that ' +
    'were up have not spoken since its start.',
  epochs_unique:
    'An epoch has one history: a restore raises it above every earlier one, and no server obeys ' +
    'two controllers of one epoch.',
  lost_attempts_kept:
    'An attempt that the store has lost is not stopped, unless an operator settles it or its ' +
    'task has gone on.',
  lost_attempts_settled:
    'After a restore or an accepted loss, a lost attempt that its node reports becomes the ' +
    'attempt of its pending task, or is quarantined.',
} as const satisfies Readonly<Record<string, string>>

const EVENTUALLY = {
  every_feasible_task_runs: 'Every task that some node could take has started.',
  all_tasks_finish: 'Every task has ended.',
} as const satisfies Readonly<Record<string, string>>

const SOMETIMES = {
  swap_out: 'A task was swapped out.',
  swap_in: 'A task returned to VRAM.',
  p0_preempts_p0: 'A P0 task was swapped out for another P0 task.',
  task_waits: 'A task that some node could take had to wait.',
  reservation: 'A task waited so long that GPUs were held for it.',
  multi_gpu_placed: 'A task was placed on several GPUs.',
  growth_granted: 'A task that asked for more VRAM got it.',
  growth_refused: 'A task that asked for more VRAM was refused.',
  swap_refused: 'A server failed to execute a swap.',
  node_suspect: 'A node was silent, and no task is placed on it.',
  node_unreachable: 'A node was silent until its run lease was over.',
  node_returned: 'A silent node reconnected.',
  duplicate_node: 'Two servers used the same node name alternately.',
  requeues_frozen: 'Requeueing was frozen because many nodes became silent at the same time.',
  task_unreachable: 'A running task was on a node that is unreachable.',
  task_reachable: 'An unreachable task was reported again.',
  task_requeued: 'A task that had a place was pending again.',
  start_unconfirmed: 'An unconfirmed start was revoked.',
  task_lost: 'A task was given up as lost.',
  task_failed: 'A task failed.',
  store_behind: 'A controller raised STORE_BEHIND: a node had heard of more than the store had.',
  store_recovered: 'A recovery after a restore, or an accepted loss, ended.',
  attempt_quarantined: 'An attempt that the store had lost was quarantined.',
  attempt_reattached: 'An attempt that the store had lost became the attempt of its task again.',
  result_unknown: 'A task ended as lost because its result was in the lost part of the history.',
  controller_restarted: 'A later controller continued from the durable state of an earlier one.',
} as const satisfies Readonly<Record<string, string>>

export type AlwaysName = keyof typeof ALWAYS
export type EventuallyName = keyof typeof EVENTUALLY
export type SometimesName = keyof typeof SOMETIMES

export const ALWAYS_NAMES = Object.keys(ALWAYS) as readonly AlwaysName[]

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
  that: required(choiceOf(EVENTUALLY), 'Condition to reach.'),
  after: optional(choice('heal'), 'heal', 'heal: when the last fault is over; without faults, the start.'),
  within: optional(nullable(duration(0, ONE_YEAR_MS)), null, 'Time limit; null: the end of the run.'),
})

const bound = nullable(numberFrom(-LARGEST, LARGEST))
const finalRule = record(
  {
    metric: required(choice(...METRIC_PATHS), 'Metric of the result (defined in docs/simulation-model.md).'),
    min: optional(bound, null, 'Minimum.'),
    max: optional(bound, null, 'Maximum.'),
    equals: optional(bound, null, 'Exact value.'),
  },
  {
    check: ({ min, max, equals }, refuse) => {
      if (min === null && max === null && equals === null)
        refuse(null, 'needs at least one of min, max, equals')
      if (min !== null && max !== null && max < min) refuse('max', 'must not be below min')
    },
  },
)

export const assertRule = record({
  always: optional(
    scalarOr(choice('all'), list(choiceOf(ALWAYS), 0, MAX_ASSERTIONS)),
    [],
    'Holds after every event; all selects every rule.',
  ),
  eventually: optional(list(eventuallyRule, 0, MAX_ASSERTIONS), [], 'Becomes true within the time limit.'),
  sometimes: optional(list(choiceOf(SOMETIMES), 0, MAX_ASSERTIONS), [], 'Happens at least once.'),
  final: optional(list(finalRule, 0, MAX_ASSERTIONS), [], 'Bounds on the result.'),
})

export function assertionsOf({
  always,
  eventually,
  sometimes,
  final,
}: ValueOf<typeof assertRule>): Assertions {
  return {
    always: always === 'all' ? ALWAYS_NAMES : always,
    sometimes,
    final,
    eventually: eventually.map(({ that, after, within }) => ({ that, after, withinMs: within })),
  }
}
