import { Type, type Static } from 'typebox'
import { ALARM_CODES } from '../../query/alarms.ts'
import { WAIT_REASONS } from '../../query/explain/explain.ts'
import {
  count,
  countOrNull,
  instant,
  instantOrNull,
  list,
  mib,
  numberOrNull,
  objectOrNull,
  oneOf,
  textOrNull,
} from '../http/fields-schema.ts'
import { StarvationSchema } from '../tasks/schema.ts'

const TasksSchema = Type.Object({
  by_list: Type.Object(
    {
      running: count('assigned, running, unreachable'),
      pending: count(),
      completed: count('completed, failed, cancelled, lost'),
    },
    { description: 'Number of tasks in each of the three task lists' },
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
  stopping: count('Placed tasks that are being stopped and whose end has not been reported yet'),
  ended_last_hour: objectOrNull(
    Type.Object({
      since: instant('One hour before `at`, or the time of the oldest stored event, whichever is later'),
      failed: count('Tasks that failed since then'),
      lost: count('Tasks that were lost since then'),
    }),
    'Tasks that failed or were lost in the last hour; null until the store has responded',
  ),
})

const PendingReasonsSchema = Type.Object({
  counted: count('Number of tasks that the counts are based on'),
  of: count('Pending tasks; the sum of the counts'),
  is_estimate: Type.Boolean({
    description:
      'false: the reasons of all pending tasks were evaluated. true: the counts are scaled up from a ' +
      'uniform sample of up to 1,024 tasks, evaluated for at most 10 ms per second',
  }),
  reasons: list(Type.Object({ reason: oneOf(WAIT_REASONS), tasks: count() })),
})

const WindowSchema = Type.Object({ from: instant('Start'), to: instant('End'), seconds: Type.Number() })

const AlarmSchema = Type.Object({
  code: oneOf(ALARM_CODES),
  since: instantOrNull('Start of the condition; null: unknown'),
  nodes: list(Type.String(), {
    description: 'Names of the affected nodes, at most 20; empty: the whole cluster',
  }),
  detail: Type.String({ description: 'What is wrong, and what to do' }),
})

const difference = (of: string) => numberOrNull(`${of}, minus its mean in that hour`)

const TrendsSchema = Type.Object(
  {
    utilization_points: difference('utilization_percent, in percentage points'),
    starvation_points: difference('The total of starvation_percent, in percentage points'),
    pending_tasks: difference('Number of pending tasks'),
  },
  {
    description:
      'Change compared with the hour that ended 24 hours before `at`; null: one of the two values is ' +
      'unknown. At most one minute old',
  },
)

const ControllersSchema = Type.Object({
  leader: Type.String({ description: 'Name of the leader, which is the controller that sent this response' }),
  standbys: countOrNull(
    'Controllers that can take over, seen in the last 10 seconds; null: the store has not responded',
  ),
})

export const SummarySchema = Type.Object(
  {
    at: instant('Time of the summary'),
    revision: count('seq of the newest event included'),
    fleet: oneOf(['simulated', 'live'], { description: 'Whether the GPU servers are simulated' }),
    broker_urls: list(Type.String(), {
      description: 'Configured addresses of the message broker, without credentials; empty: none',
    }),
    alarms: list(AlarmSchema, {
      description: 'Conditions that need the attention of an operator; empty: none',
    }),
    tasks: TasksSchema,
    pending_by_reason: PendingReasonsSchema,
    nodes: Type.Object({
      total: count('Registered nodes'),
      up: count('Nodes that are up'),
      attention: count('Nodes with at least one of the conditions below; see GET /nodes?status=attention'),
      silent: count('suspect or unreachable'),
      cordoned: count('Cordoned by an operator, including draining nodes'),
      auto_cordoned: count('Cordoned by the controller because they cannot start tasks'),
      draining: count('Nodes that are being drained'),
      reserve_breached: count('Nodes with a reserve deficit on a GPU'),
      over_limit: count('Nodes with a GPU over its commit limit'),
      quarantined: count('Nodes with attempts unknown to the store'),
    }),
    gpus: Type.Object({ total: count(), up: count('On nodes that are up') }),
    vram: Type.Object({
      physical_mib: mib('Physical VRAM of the GPUs'),
      used_mib: mib('Resident plus foreign VRAM'),
      resident_mib: mib('Used by tasks'),
      foreign_mib: mib('Used by processes that were not started by a GPU server'),
      committed_mib: mib('Committed to placed tasks, resident or swapped out'),
      swapped_mib: mib('Demand of the swapped-out tasks'),
      effective_schedulable_mib: mib(
        'Physical VRAM × (1 + overcommit percentage / 100), summed over the nodes',
      ),
      commit_limit_mib: mib('Total commit limit'),
      up: Type.Object(
        {
          physical_mib: mib('Physical VRAM of the GPUs'),
          used_mib: mib('Resident plus foreign VRAM'),
          committed_mib: mib('Committed to placed tasks, resident or swapped out'),
          swapped_mib: mib('Demand of the swapped-out tasks'),
          effective_schedulable_mib: mib(
            'Physical VRAM × (1 + overcommit percentage / 100), summed over the nodes',
          ),
        },
        {
          description:
            'The same for nodes that are up, as in /series; the figures above include the last known ' +
            'state of silent nodes',
        },
      ),
    }),
    overcommit: Type.Object({
      default_percent: count('Global default'),
      source: oneOf(['environment', 'persisted']),
      nodes_with_override: count(),
    }),
    swaps: Type.Object({
      outs: count('Swap-outs completed since the controller started'),
      ins: count('Swap-ins completed since the controller started'),
      out_mib: mib('Total VRAM swapped out since the controller started'),
      in_mib: mib('Total VRAM swapped in since the controller started'),
    }),
    window: objectOrNull(
      WindowSchema,
      'Window of the two percentages, about the last minute; null: not available yet',
    ),
    utilization_percent: numberOrNull(
      'Share of GPU time with at least one running kernel, over all GPUs that are up',
    ),
    utilization_unknown_because: textOrNull('Why utilization_percent is null'),
    starvation_percent: objectOrNull(StarvationSchema, '(demand − served) / demand, with its three parts'),
    starvation_unknown_because: textOrNull('Why starvation_percent is null'),
    starvation_compute_is_estimate: Type.Boolean({
      description: 'true: the compute part is an estimate, which is always the case on real GPUs',
    }),
    trends: TrendsSchema,
    controllers: objectOrNull(
      ControllersSchema,
      'Controllers that use this store; null: no other controller is known',
    ),
  },
  { $id: 'Summary' },
)
export type SummaryBody = Static<typeof SummarySchema>
