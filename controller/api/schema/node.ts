import { Type, type Static } from 'typebox'
import { CONFIG_RULES, type FieldRule } from '../../domain/config.ts'
import { NODE_CONDITIONS } from '../../domain/node-conditions.ts'
import { PARTS_CURSOR_LIMIT } from '../cursor.ts'
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
} from './fields.ts'
import { DRY_RUN_PARTS } from './impact.ts'

/** Orders of a list of nodes; `node-list.ts` says what each compares. */
export const NODE_SORTS = ['registered', 'name', 'load', 'allocated', 'used', 'swaps'] as const
export type NodeSort = (typeof NODE_SORTS)[number]

/** The same range as the global value (specification 8), and null, which takes the override away. */
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
        'Override of the global percentage; 0 turns overcommit off here; null and leaving it out both take the override away',
      ),
    ),
    safety_reserve_mib: Type.Optional(
      overrideOf(
        CONFIG_RULES.safety_reserve_mib,
        'Override of the safety reserve of each GPU; null takes it away, leaving it out keeps it',
      ),
    ),
  },
  { examples: [{ overcommit_vram_percent: 50 }, { overcommit_vram_percent: null }] },
)
export type NodeConfigChangeBody = Static<typeof NodeConfigChangeSchema>

/** The VRAM figures of a GPU, a node or the cluster; those of a node are sums over its GPUs. */
export const VramSchema = Type.Object({
  physical_mib: mib('What the GPUs have'),
  used_mib: mib('Resident and foreign together'),
  resident_mib: mib('Held by tasks that are in VRAM or moving in or out'),
  foreign_mib: mib('Held by processes that no GPU server started'),
  committed_mib: mib('Promised to placed tasks, resident or swapped out (allocated)'),
  swapped_mib: mib('Demand of the tasks that are swapped out'),
  free_mib: mib('Physical VRAM that a new task could have at once'),
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
  commit_limit_mib: mib('What may be promised in all'),
  over_committed_mib: mib('Promised beyond the limit, after it was lowered'),
  reserve_deficit_mib: mib('Missing from the safety reserve'),
})
export type Vram = Static<typeof VramSchema>

export const GpuSchema = Type.Object({
  index: count(),
  model: Type.String(),
  vram: VramSchema,
  task_ids: list(Type.String(), { description: 'Tasks placed here, resident or not' }),
  exclusive_task_id: textOrNull('The task that has the GPU to itself'),
})
export type GpuBody = Static<typeof GpuSchema>

export const NodeSchema = Type.Object(
  {
    node_id: Type.String({ description: 'UUID' }),
    name: Type.String(),
    address: Type.String(),
    status: oneOf(['up', 'suspect', 'unreachable'], {
      description: 'suspect: silent, takes no new task; unreachable: its lease is over',
    }),
    cordoned: Type.Boolean({ description: 'An operator lets it take no new task' }),
    auto_cordon: objectOrNull(
      Type.Object({
        since: instant('Closed'),
        code: Type.String({ description: 'Of the last refused start' }),
        reason: Type.String({ description: "The node's own words" }),
        next_trial_at: instant('From then on one task may be placed there, to see whether it starts'),
        failed_trials: count('Trial starts that failed; the time between them doubles'),
        is_trial_open: Type.Boolean({ description: 'It waits for a task, as its trial' }),
      }),
      'Set while the controller itself has closed it, because it refused starts for reasons that do not depend on the task; uncordon ends that',
    ),
    drain: objectOrNull(
      Type.Object({
        since: instant('Begun'),
        moves_at: instantOrNull('From then on tasks that may be requeued are moved; null: none is'),
        by: Type.String({ description: 'Who wanted it' }),
        tasks_left: count('Tasks that are still placed here; 0: it is drained'),
      }),
      'Set while an operator empties it; uncordon ends that',
    ),
    groups: list(Type.String(), { description: 'Empty: it belongs to the common pool' }),
    task_identity: oneOfOrNull(
      ['uid_per_attempt', 'task_user', 'root', 'server_user'],
      'The users that its tasks run as: each attempt one of its own, one for all, root, or that of the server; null: it has not said',
    ),
    overcommit_vram_percent: countOrNull('The override of this node; null: the global default applies'),
    safety_reserve_mib: countOrNull(
      'The override of this node, for each GPU; null: the global reserve applies',
    ),
    overcommit: Type.Object({
      override_percent: countOrNull('The override of this node'),
      default_percent: count('The global default'),
      effective_percent: count('The one that applies'),
      source: oneOf(['node', 'global']),
    }),
    reserve: Type.Object({
      override_mib: countOrNull('The override of this node'),
      default_mib: count('The global reserve'),
      effective_mib: count('The one that applies, for each GPU'),
    }),
    vram: VramSchema,
    host_memory: Type.Object({
      swap_mib: mib('Host memory for what is swapped out'),
      used_mib: mib('Swapped out or moving'),
      promised_mib: mib('Needed if all swappable tasks of over-full GPUs were out at once'),
    }),
    quarantined_attempts: count('Attempts that run here and that the store does not know: GET /attempts'),
    attempts: count(
      'Attempts that the server holds, or is about to: tasks placed here, and others that it has named',
    ),
    max_attempts: count(
      'Attempts that it can hold at once, as it declared; at the limit tasks wait with NODE_TASK_LIMIT',
    ),
    queue_length: count('Swap-ins, growths and placements that wait for bytes here'),
    swaps: Type.Object(
      { outs: count(), ins: count() },
      { description: 'Completed here since the controller started' },
    ),
    gpus: list(GpuSchema),
    registered_at: instant('First seen'),
    last_seen_at: instant('Last heard from'),
  },
  { $id: 'Node', description: 'A GPU server: capacity, settings in effect, use, state and GPUs.' },
)
export type NodeBody = Static<typeof NodeSchema>
export const NodeRef = refTo<NodeBody>('Node')

/** The answer to PUT /nodes/{node_id}/config: the node as it is now, or with `dry_run` as it would be. */
export const ChangedNodeSchema = Type.Object({ ...NodeSchema.properties, ...DRY_RUN_PARTS })
export type ChangedNodeBody = Static<typeof ChangedNodeSchema>

export const NodePageSchema = page(NodeRef)
export type NodePage = Static<typeof NodePageSchema>
export const NodePathSchema = Type.Object({ node_id: pathId('UUID of the node, in upper or lower case') })
export const NODE_STATUS_FILTERS = ['up', 'suspect', 'unreachable', 'attention', ...NODE_CONDITIONS] as const

export const NodeQuerySchema = closed({
  status: Type.Optional(
    oneOf(NODE_STATUS_FILTERS, {
      description:
        'Only nodes of this status, or with this condition (summary.nodes); attention: with at least one condition',
    }),
  ),
  group: Type.Optional(pathId('Only nodes of this group; 400 when there is none of that name')),
  q: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Part of the name, or the whole id' }),
  ),
  limit: Type.Optional(integer(1, 1000, { default: 200 })),
  sort: Type.Optional(
    oneOf(NODE_SORTS, {
      default: 'registered',
      description:
        'registered; name; load (entries that wait for VRAM there, then allocated); allocated (share of the commit limit that is promised); used (share of physical VRAM); swaps (since the controller started)',
    }),
  ),
  order: Type.Optional(
    oneOf(['asc', 'desc'], { description: 'Left out: asc for registered and name, else desc' }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: PARTS_CURSOR_LIMIT, description: 'next_cursor of the page before' }),
  ),
})
export type NodeQuery = Static<typeof NodeQuerySchema>

/** POST /nodes/{node_id}/drain. */
export const DrainQuerySchema = closed({
  requeue: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Tasks with on_node_loss requeue are stopped and wait for another node',
    }),
  ),
  after_seconds: Type.Optional(
    integer(0, 604_800, { description: 'With requeue: they may end in their own time for so long (0)' }),
  ),
})
export type DrainQuery = Static<typeof DrainQuerySchema>
