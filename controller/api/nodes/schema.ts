import { Type, type Static } from 'typebox'
import { CONFIG_RULES, type FieldRule } from '../../model/config.ts'
import { NODE_CONDITIONS } from '../../model/node-conditions.ts'
import { PARTS_CURSOR_LIMIT } from '../http/cursor.ts'
import { listFormat } from '../http/csv.ts'
import {
  closed,
  count,
  countOrNull,
  instant,
  instantOrNull,
  integer,
  integerOrNull,
  list,
  mib,
  objectOrNull,
  oneOf,
  oneOfOrNull,
  page,
  pathId,
  refTo,
  textOrNull,
} from '../http/fields-schema.ts'
import { DRY_RUN_PARTS } from '../config/impact-schema.ts'

/** Sort orders of a list of nodes; `node-list.ts` defines each. */
const NODE_SORTS = ['registered', 'name', 'load', 'allocated', 'used', 'swaps'] as const
export type NodeSort = (typeof NODE_SORTS)[number]

/** The range of the global value (specification 8), or null to remove the override. */
function overrideOf(rule: FieldRule, description: string) {
  if (rule.kind !== 'integer') throw new Error('an override is a number')
  return integerOrNull(rule.min, rule.max, { description })
}

/** PUT /nodes/{node_id}/config. */
export const NodeConfigChangeSchema = closed(
  {
    overcommit_vram_percent: Type.Optional(
      overrideOf(
        CONFIG_RULES.default_vram_overcommit_percent,
        'Override of the global percentage; 0 disables overcommit on this node; null or omission removes ' +
          'the override',
      ),
    ),
    safety_reserve_mib: Type.Optional(
      overrideOf(
        CONFIG_RULES.safety_reserve_mib,
        'Override of the safety reserve of each GPU; null removes it, omission keeps it',
      ),
    ),
  },
  { examples: [{ overcommit_vram_percent: 50 }, { overcommit_vram_percent: null }] },
)
export type NodeConfigChangeBody = Static<typeof NodeConfigChangeSchema>

/** The VRAM figures of a GPU, a node or the cluster; those of a node are sums over its GPUs. */
const VramSchema = Type.Object({
  physical_mib: mib('Physical VRAM of the GPUs'),
  used_mib: mib('Resident plus foreign VRAM'),
  resident_mib: mib('Used by tasks that are resident or being swapped in or out'),
  foreign_mib: mib('Used by processes that were not started by a GPU server'),
  committed_mib: mib('Committed to placed tasks, resident or swapped out'),
  swapped_mib: mib('Demand of the swapped-out tasks'),
  free_mib: mib('Physical VRAM immediately available to a new task'),
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
  commit_limit_mib: mib('Total commit limit'),
  over_committed_mib: mib('VRAM committed beyond the commit limit, for example after the limit was lowered'),
  reserve_deficit_mib: mib('Reserve deficit'),
})
export type Vram = Static<typeof VramSchema>

const GpuSchema = Type.Object({
  index: count(),
  model: Type.String(),
  vram: VramSchema,
  task_ids: list(Type.String(), { description: 'IDs of the tasks placed on the GPU, resident or not' }),
  exclusive_task_id: textOrNull('The task with exclusive use of the GPU'),
})
export type GpuBody = Static<typeof GpuSchema>

export const NodeSchema = Type.Object(
  {
    node_id: Type.String({ description: 'UUID' }),
    name: Type.String(),
    address: Type.String(),
    status: oneOf(['up', 'suspect', 'unreachable'], {
      description:
        'suspect: the node is silent and receives no new tasks; unreachable: its lease has expired',
    }),
    cordoned: Type.Boolean({ description: 'An operator has stopped new placements on the node' }),
    auto_cordon: objectOrNull(
      Type.Object({
        since: instant('Time of the automatic cordon'),
        code: Type.String({ description: 'Code of the last refused start' }),
        reason: Type.String({ description: 'Message from the node' }),
        next_trial_at: instant('When the next trial task can be placed on the node'),
        failed_trials: count('Failed trial starts; the interval doubles after each'),
        is_trial_open: Type.Boolean({ description: 'The node accepts one task as a trial start' }),
      }),
      'Set while the node is cordoned by the controller because it refused starts for reasons unrelated ' +
        'to the task; uncordon ends the cordon',
    ),
    drain: objectOrNull(
      Type.Object({
        since: instant('Start of the drain'),
        moves_at: instantOrNull('When the requeueing of tasks starts; null: never'),
        by: Type.String({ description: 'Caller that started the drain' }),
        tasks_left: count('Tasks still placed on the node; 0: drained'),
      }),
      'Set while the node is being drained; uncordon ends it',
    ),
    groups: list(Type.String(), {
      description: 'Groups of the node; empty: the node belongs to the common pool',
    }),
    task_identity: oneOfOrNull(
      ['uid_per_attempt', 'task_user', 'root', 'server_user'],
      'User that tasks run as: one per attempt, one for all tasks, root, or the user of the server; ' +
        'null: not reported',
    ),
    features: list(Type.String(), {
      description: 'Task features that the GPU server supports, for example `image` (container images)',
    }),
    overcommit_vram_percent: countOrNull('Override for this node; null: the global default applies'),
    safety_reserve_mib: countOrNull('Override for this node, per GPU; null: the global reserve applies'),
    overcommit: Type.Object({
      override_percent: countOrNull('Override for this node'),
      default_percent: count('Global default'),
      effective_percent: count('Effective percentage'),
      source: oneOf(['node', 'global']),
    }),
    reserve: Type.Object({
      override_mib: countOrNull('Override for this node'),
      default_mib: count('Global reserve'),
      effective_mib: count('Effective reserve, per GPU'),
    }),
    vram: VramSchema,
    host_memory: Type.Object({
      swap_mib: mib('Host memory available for swap'),
      used_mib: mib('Used by tasks that are swapped out or moving'),
      promised_mib: mib(
        'Needed if all swappable tasks on overcommitted GPUs were swapped out at the same time',
      ),
    }),
    quarantined_attempts: count(
      'Attempts that run on the node but are unknown to the store; see GET /attempts',
    ),
    attempts: count(
      'Attempts on the GPU server: those of tasks placed on the node, and others that the server reported',
    ),
    max_attempts: count(
      'Declared maximum number of concurrent attempts; at the limit tasks wait with NODE_TASK_LIMIT',
    ),
    queue_length: count('Swap-ins, growths and placements waiting for VRAM on the node'),
    swaps: Type.Object(
      { outs: count(), ins: count() },
      { description: 'Swaps completed on the node since the controller started' },
    ),
    gpus: list(GpuSchema),
    registered_at: instant('First seen'),
    last_seen_at: instant('Last contact'),
  },
  { $id: 'Node', description: 'A GPU server: capacity, effective settings, usage, state and GPUs.' },
)
export type NodeBody = Static<typeof NodeSchema>
export const NodeRef = refTo<NodeBody>('Node')

/** The response to PUT /nodes/{node_id}/config: the changed node, or with `dry_run` the resulting node. */
export const ChangedNodeSchema = Type.Object({ ...NodeSchema.properties, ...DRY_RUN_PARTS })
export type ChangedNodeBody = Static<typeof ChangedNodeSchema>

export const NodePageSchema = page(NodeRef)
export type NodePage = Static<typeof NodePageSchema>
export const NodePathSchema = Type.Object({ node_id: pathId('UUID of the node, in upper or lower case') })
const NODE_STATUS_FILTERS = ['up', 'suspect', 'unreachable', 'attention', ...NODE_CONDITIONS] as const

export const NodeQuerySchema = closed({
  status: Type.Optional(
    oneOf(NODE_STATUS_FILTERS, {
      description: 'Only nodes with this status or condition (summary.nodes); attention: any condition',
    }),
  ),
  group: Type.Optional(pathId('Only nodes of this group; 400 if the group does not exist')),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only nodes whose name contains this text, or the node with this ID',
    }),
  ),
  limit: Type.Optional(integer(1, 1000, { default: 200 })),
  sort: Type.Optional(
    oneOf(NODE_SORTS, {
      default: 'registered',
      description:
        'registered; name; load (entries waiting for VRAM on the node, then allocated); allocated ' +
        '(committed share of the commit limit); used (share of physical VRAM); swaps (since the ' +
        'controller started)',
    }),
  ),
  order: Type.Optional(
    oneOf(['asc', 'desc'], { description: 'Default: asc for registered and name, otherwise desc' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the previous page' }),
  ),
  format: Type.Optional(listFormat),
})
export type NodeQuery = Static<typeof NodeQuerySchema>

/** POST /nodes/{node_id}/drain. */
export const DrainQuerySchema = closed({
  requeue: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Stop tasks whose on_node_loss is requeue, so that they wait for another node',
    }),
  ),
  after_seconds: Type.Optional(
    integer(0, 604_800, {
      description: 'With requeue: seconds to wait for tasks to end on their own (default 0)',
    }),
  ),
})
export type DrainQuery = Static<typeof DrainQuerySchema>
