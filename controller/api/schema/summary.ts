import { Type, type Static } from 'typebox'
import { ALARM_CODES } from '../../engine/alarms.ts'
import { WAIT_REASONS } from '../../scheduler/explain.ts'
import {
  count,
  instant,
  instantOrNull,
  list,
  mib,
  numberOrNull,
  objectOrNull,
  oneOf,
  textOrNull,
} from './fields.ts'
import { StarvationSchema } from './task.ts'

const TasksSchema = Type.Object({
  by_list: Type.Object(
    {
      running: count('assigned, running, unreachable'),
      pending: count(),
      completed: count('completed, failed, cancelled, lost'),
    },
    { description: 'The three lists of the specification' },
  ),
  by_state: Type.Object({
    pending: count(),
    assigned: count(),
    running: count(),
    unreachable: count(),
    completed: count(),
    failed: count(),
    cancelled: count(),
    lost: count(),
  }),
  stopping: count('Placed tasks that were told to end and whose servers have not reported their end yet'),
  ended_last_hour: objectOrNull(
    Type.Object({
      since: instant('An hour before `at`, or the oldest event that is kept where that is later'),
      failed: count('Tasks that ended as failed since then'),
      lost: count('Tasks that ended as lost since then'),
    }),
    'Tasks that failed or were lost lately; null while the store has not answered',
  ),
})

const PendingReasonsSchema = Type.Object({
  counted: count('Explanations that the numbers are made from'),
  of: count('Pending tasks: the numbers add up to it'),
  is_estimate: Type.Boolean({
    description:
      'false: every pending task was explained. true: an even sample of them was, up to 1,024 and for 10 ms each second, and its shares are scaled up to all',
  }),
  reasons: list(Type.Object({ reason: oneOf(WAIT_REASONS), tasks: count() })),
})

const WindowSchema = Type.Object({ from: instant('Start'), to: instant('End'), seconds: Type.Number() })

const AlarmSchema = Type.Object({
  code: oneOf(ALARM_CODES),
  since: instantOrNull('Since when it holds; null: not known'),
  nodes: list(Type.String(), {
    description: 'Names of the nodes that it concerns, the first 20; empty: the whole cluster',
  }),
  detail: Type.String({ description: 'What is wrong, then what to do' }),
})

export const SummarySchema = Type.Object(
  {
    at: instant('When it was taken'),
    revision: count('seq of the newest event that it shows'),
    fleet: oneOf(['simulated', 'live'], { description: 'Whether the GPU servers are simulated' }),
    broker_urls: list(Type.String(), {
      description:
        'Addresses of the message broker as the controller has them, without credentials; empty: there is none',
    }),
    alarms: list(AlarmSchema, {
      description: 'States that an operator should know of; empty when all is well',
    }),
    tasks: TasksSchema,
    pending_by_reason: PendingReasonsSchema,
    nodes: Type.Object({
      total: count('Nodes that are registered'),
      up: count('Nodes that answer'),
      attention: count(
        'Nodes with at least one of the conditions that follow: GET /nodes?status=attention; 0: there is none',
      ),
      silent: count('suspect or unreachable'),
      cordoned: count('An operator lets them take no new task; draining ones included'),
      auto_cordoned: count('Closed by the controller, because they refuse to start tasks'),
      draining: count('An operator empties them'),
      reserve_breached: count('With a GPU on which VRAM is missing from the safety reserve'),
      over_limit: count('With a GPU on which more is promised than its commit limit allows'),
      quarantined: count('With attempts that the store does not know'),
    }),
    gpus: Type.Object({ total: count(), up: count('On nodes that are up') }),
    vram: Type.Object({
      physical_mib: mib('What the GPUs have'),
      used_mib: mib('Resident and foreign together'),
      resident_mib: mib('Held by tasks'),
      foreign_mib: mib('Held by processes that no GPU server started'),
      committed_mib: mib('Promised to placed tasks, resident or swapped out'),
      swapped_mib: mib('Demand of the tasks that are swapped out'),
      effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100), node by node'),
      commit_limit_mib: mib('What may be promised in all'),
      up: Type.Object(
        {
          physical_mib: mib('What the GPUs have'),
          used_mib: mib('Resident and foreign together'),
          committed_mib: mib('Promised to placed tasks, resident or swapped out'),
          swapped_mib: mib('Demand of the tasks that are swapped out'),
          effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100), node by node'),
        },
        {
          description:
            'The same on nodes that are up, as /series has it; the figures above include what silent nodes held last',
        },
      ),
    }),
    overcommit: Type.Object({
      default_percent: count('The global default'),
      source: oneOf(['environment', 'persisted']),
      nodes_with_override: count(),
    }),
    swaps: Type.Object({
      outs: count('Completed since the controller started'),
      ins: count('Completed since the controller started'),
      out_mib: mib('Moved out by them'),
      in_mib: mib('Moved in by them'),
    }),
    window: objectOrNull(
      WindowSchema,
      'What the two percentages are about: about the last minute; null when there is none yet',
    ),
    utilization_percent: numberOrNull(
      'Time in which at least one kernel ran, of the time of all GPUs that are up',
    ),
    utilization_unknown_because: textOrNull('Why utilization_percent is null'),
    starvation_percent: objectOrNull(StarvationSchema, '(demand − served) / demand, and its three parts'),
    starvation_unknown_because: textOrNull('Why starvation_percent is null'),
    starvation_compute_is_estimate: Type.Boolean({
      description: 'On real GPUs the compute part is an estimate',
    }),
  },
  { $id: 'Summary' },
)
export type SummaryBody = Static<typeof SummarySchema>
