/** GET /tasks/{task_id}/explain (docs/explain.md). */
import { Type, type Static } from 'typebox'
import { DECISION_RULES } from '../../domain/decision.ts'
import { VICTIM_STANDINGS } from '../../engine/explain/explain-victim.ts'
import { WAIT_REASONS } from '../../scheduler/explain.ts'
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
} from './fields.ts'
import { StartForecastSchema } from './twin.ts'
import { PlacementSchema, TASK_STATES, TaskSchema, WaitSchema } from './task.ts'

const reasonOrNull = Type.Unsafe<(typeof WAIT_REASONS)[number] | null>({
  type: ['string', 'null'],
  enum: [...WAIT_REASONS, null],
  description: 'The first that keeps it out there; null: it fits',
})

const GpuVerdictSchema = Type.Object({
  gpu: count('Its index'),
  admits_now_mib: mib('The largest demand of this kind that fits now'),
  admits_after_swap_mib: mib('The largest once those that may leave for it have left'),
  free_mib: mib('Physically free'),
  commit_room_mib: Type.Integer({
    description: 'What may still be promised, MiB; negative after the limit was lowered',
  }),
  reach_mib: Type.Integer({
    description: 'Free once all that moves, and all that may leave for it, has left, MiB',
  }),
  key1: Type.Integer({ description: 'GPUs where it fits now are taken in ascending order of these keys' }),
  key2: Type.Integer(),
})

const NodeVerdictSchema = Type.Object({
  node_id: Type.String(),
  name: Type.String(),
  fits: Type.Boolean({ description: 'It would be placed there if it were the only one that waits' }),
  reason: reasonOrNull,
  have_mib: countOrNull('What it could have there'),
  need_mib: countOrNull('What it needs there'),
  gpus: list(GpuVerdictSchema, { description: 'In the order in which they would be taken; at most 16' }),
})

const VerdictsSchema = Type.Object({
  nodes: list(NodeVerdictSchema, {
    description: 'Nodes of its pool, those where it comes nearest first; at most 20',
  }),
  others: list(Type.Object({ reason: reasonOrNull, nodes: count() }), {
    description: 'The nodes that are not named, by reason',
  }),
  node_count: count('Nodes of its pool'),
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
    description: 'Of a setting: the global one, or the one of this node',
  }),
  from: countOrNull('What holds now: percent, MiB, or noswap'),
  to: countOrNull('The value nearest to that with which it fits'),
  group: textOrNull('groups: the one to target; null there: none'),
  task_id: textOrNull('task_ends: whose end would do, the one with the fewest bytes'),
  at: instantOrNull('victims_idle: when enough tasks may leave'),
  node_id: Type.String({ description: 'Where it would fit then' }),
  node_name: Type.String(),
  sentence: Type.String(),
  proviso: textOrNull('What must not take the room first; null: nothing can'),
})

const WouldFitIfSchema = Type.Object({
  fits_alone: Type.Boolean({
    description: 'It fits as things are: only those that come before it are in the way',
  }),
  changes: list(WouldFitSchema, {
    description:
      'Single changes, each the smallest of its kind; none of them: no single change would place it',
  }),
  nodes_tried: count('Nodes that were tried, those with most commit room first'),
  nodes: count('Nodes of its pool'),
})

const VictimSchema = Type.Object({
  standing: oneOf(VICTIM_STANDINGS),
  eligible_at: instantOrNull(
    'When it becomes eligible if nothing changes; null: it is, or time alone does not make it',
  ),
  sentence: Type.String(),
})

const DecidedSchema = Type.Object({
  number: count('For GET /decisions/{number}'),
  at: instant('When it was decided'),
  rule: oneOf(DECISION_RULES),
  sentence: Type.String(),
})

export const ExplanationSchema = Type.Object({
  task_id: Type.String(),
  state: oneOf(TASK_STATES),
  residency: TaskSchema.properties.residency,
  waits: Type.Boolean(),
  sentence: Type.String({ description: 'For people' }),
  wait: objectOrNull(WaitSchema, 'null when it does not wait'),
  placement: objectOrNull(PlacementSchema, 'null while it is pending or final'),
  verdicts: objectOrNull(VerdictsSchema, 'Node by node; null unless it is pending and owns no bytes yet'),
  would_fit_if: objectOrNull(
    WouldFitIfSchema,
    'What would place it; null unless it is pending and owns no bytes yet',
  ),
  victim: objectOrNull(VictimSchema, 'Whether it could be swapped out now; null unless it is placed'),
  placed_by: objectOrNull(
    DecidedSchema,
    'Why it sits where it does; null unless it is placed, or when that is no longer kept',
  ),
  swapped_out_by: objectOrNull(
    DecidedSchema,
    'By which decision it left VRAM last, in this placement; null when it did not, or that is no longer kept',
  ),
  forecast: objectOrNull(
    StartForecastSchema,
    'When it is expected to start; null unless it waits for its first start and was simulated',
  ),
  forecast_unavailable_because: textOrNull('Why forecast is null'),
})
export type ExplanationBody = Static<typeof ExplanationSchema>
