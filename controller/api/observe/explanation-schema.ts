/** GET /tasks/{task_id}/explain (docs/explain.md). */
import { Type, type Static } from 'typebox'
import { DECISION_RULES } from '../../model/decision.ts'
import { VICTIM_STANDINGS } from '../../query/explain/explain-victim.ts'
import { WAIT_REASONS } from '../../query/explain/explain.ts'
import {
  count,
  countOrNull,
  instant,
  instantOrNull,
  list,
  mib,
  objectOrNull,
  oneOf,
  textOrNull,
} from '../http/fields-schema.ts'
import { StartForecastSchema } from '../twin/schema.ts'
import { PlacementSchema, TaskSchema, WaitSchema } from '../tasks/schema.ts'
import { TASK_STATES } from '../../../protocol/units.ts'

const reasonOrNull = Type.Unsafe<(typeof WAIT_REASONS)[number] | null>({
  type: ['string', 'null'],
  enum: [...WAIT_REASONS, null],
  description: 'First reason that excludes the node; null: the task fits',
})

const GpuVerdictSchema = Type.Object({
  gpu: count('GPU index'),
  admits_now_mib: mib('Largest demand of a task of this kind (swappable or noswap) that fits now'),
  admits_after_swap_mib: mib(
    'Largest demand of a task of this kind that fits after all eligible victims are swapped out',
  ),
  free_mib: mib('Free physical VRAM'),
  commit_room_mib: Type.Integer({
    description: 'Remaining commit room, MiB; negative after the limit was lowered',
  }),
  reach_mib: Type.Integer({
    description: 'VRAM free once all moves are complete and all eligible victims are swapped out, MiB',
  }),
  key1: Type.Integer({
    description: 'GPUs on which the task fits now are ranked by ascending key1, then key2',
  }),
  key2: Type.Integer(),
})

const NodeVerdictSchema = Type.Object({
  node_id: Type.String(),
  name: Type.String(),
  fits: Type.Boolean({ description: 'The task would be placed on the node if no other task were waiting' }),
  reason: reasonOrNull,
  have_mib: countOrNull('VRAM available to the task on the node'),
  need_mib: countOrNull('VRAM that the task needs on the node'),
  gpus: list(GpuVerdictSchema, { description: 'In order of preference; at most 16' }),
})

const VerdictsSchema = Type.Object({
  nodes: list(NodeVerdictSchema, {
    description: 'Nodes in the pool of the task, smallest shortfall first; at most 20',
  }),
  others: list(Type.Object({ reason: reasonOrNull, nodes: count() }), {
    description: 'Number of nodes not listed, by reason',
  }),
  node_count: count('Number of nodes in the pool of the task'),
})

export const CHANGES = [
  'overcommit',
  'reserve',
  'vram',
  'noswap',
  'uncordon',
  'groups',
  'task_ends',
  'victims_idle',
] as const

const WouldFitSchema = Type.Object({
  change: oneOf(CHANGES),
  scope: Type.Unsafe<'cluster' | 'node' | null>({
    type: ['string', 'null'],
    enum: ['cluster', 'node', null],
    description: 'Whether the global or the node setting changes',
  }),
  from: countOrNull('Current value: percent, MiB, or noswap'),
  to: countOrNull('Nearest value at which the task fits'),
  group: textOrNull('For groups: the group to target; null: no group'),
  task_id: textOrNull('For task_ends: the smallest task whose end would be enough'),
  at: instantOrNull('For victims_idle: when enough victims become eligible'),
  node_id: Type.String({ description: 'Node where the task would fit' }),
  node_name: Type.String(),
  sentence: Type.String(),
  proviso: textOrNull('What could use the VRAM first; null: nothing'),
})

const WouldFitIfSchema = Type.Object({
  fits_alone: Type.Boolean({
    description: 'The task fits without a change, but other tasks are ahead of it in the queue',
  }),
  changes: list(WouldFitSchema, {
    description: 'Single changes, each the smallest of its kind; empty: no single change is enough',
  }),
  nodes_tried: count('Number of nodes evaluated, most commit room first'),
  nodes: count('Number of nodes in the pool of the task'),
})

const VictimSchema = Type.Object({
  standing: oneOf(VICTIM_STANDINGS),
  eligible_at: instantOrNull(
    'When the task becomes eligible if nothing changes; null: it is eligible, or time alone is not enough',
  ),
  sentence: Type.String(),
})

const DecidedSchema = Type.Object({
  number: count('For GET /decisions/{number}'),
  at: instant('When the decision was made'),
  rule: oneOf(DECISION_RULES),
  sentence: Type.String(),
})

export const ExplanationSchema = Type.Object({
  task_id: Type.String(),
  state: oneOf(TASK_STATES),
  residency: TaskSchema.properties.residency,
  waits: Type.Boolean(),
  sentence: Type.String({ description: 'Human-readable explanation' }),
  wait: objectOrNull(WaitSchema, 'null: the task does not wait'),
  placement: objectOrNull(PlacementSchema, 'Current placement; null while the task is pending or completed'),
  verdicts: objectOrNull(
    VerdictsSchema,
    'Result for each node; null unless the task is pending without reserved VRAM',
  ),
  would_fit_if: objectOrNull(
    WouldFitIfSchema,
    'Changes that would place the task; null unless it is pending without reserved VRAM',
  ),
  victim: objectOrNull(VictimSchema, 'Whether the task can be swapped out now; null unless it is placed'),
  placed_by: objectOrNull(
    DecidedSchema,
    'Decision that placed the task; null: not placed, or no longer stored',
  ),
  swapped_out_by: objectOrNull(
    DecidedSchema,
    'Decision that last swapped out the task in this placement; null: none, or no longer stored',
  ),
  forecast: objectOrNull(
    StartForecastSchema,
    'Expected start; null unless the task waits for its first start and was simulated',
  ),
  forecast_unavailable_because: textOrNull('Why forecast is null'),
})
export type ExplanationBody = Static<typeof ExplanationSchema>
