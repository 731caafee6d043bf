/** Responses of dry runs: the placement of a task, and the effects of a group change. */
import { Type, type Static } from 'typebox'
import { count, list, mib, objectOrNull, oneOf, refTo } from '../http/fields-schema.ts'
import { WaitSchema } from './schema.ts'

/** POST /tasks?dry_run=true. */
export const PlacementPreviewSchema = Type.Object(
  {
    dry_run: Type.Boolean({ description: 'true: nothing was submitted' }),
    starts: oneOf(['now', 'after_swap', 'later'], {
      description: 'now; after_swap: once the victims are swapped out; later: see wait',
    }),
    placement: objectOrNull(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        gpus: list(count()),
        demand_mib: count('Demand on each GPU'),
      }),
      'Expected placement; null: the task would wait',
    ),
    victims: list(
      Type.Object({
        task_id: Type.String(),
        name: Type.String(),
        owner: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
        priority: oneOf([0, 1, 2, 3, 4]),
        gpu: count('GPU whose shortfall led to this choice'),
        mib: mib('VRAM freed on each of its GPUs'),
      }),
      { description: 'Tasks that would be swapped out for this one' },
    ),
    wait: objectOrNull(WaitSchema, 'Why the task would wait; null: it would not wait'),
  },
  { $id: 'PlacementPreview', description: 'Effects of a submission at this moment. Nothing has changed.' },
)
export type PlacementPreviewBody = Static<typeof PlacementPreviewSchema>
export const PlacementPreviewRef = refTo<PlacementPreviewBody>('PlacementPreview')

const NodeSumSchema = Type.Object({
  nodes: count(),
  node_ids: list(Type.String(), { description: 'At most 20 ids' }),
  gpus: count(),
  physical_mib: mib('Their physical VRAM'),
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
})

const TaskSumSchema = Type.Object({
  tasks: count(),
  task_ids: list(Type.String(), { description: 'At most 20 ids' }),
})

/** Effects of changing the members of a group. */
export const GroupPreviewSchema = Type.Object(
  {
    joining: NodeSumSchema,
    leaving: NodeSumSchema,
    leaves_common_pool: NodeSumSchema,
    returns_to_common_pool: NodeSumSchema,
    finishing: Type.Object(TaskSumSchema.properties, {
      description: 'Placed tasks that could no longer be placed there; they finish where they are',
    }),
    become_feasible: Type.Object(TaskSumSchema.properties, {
      description: 'Pending tasks that newly fit on some node when it is empty',
    }),
    become_infeasible: Type.Object(TaskSumSchema.properties, {
      description: 'Pending tasks that no longer fit on any node, even an empty one',
    }),
  },
  { $id: 'GroupPreview', description: 'Effects of a group change at this moment. Nothing has changed.' },
)
export type GroupPreviewBody = Static<typeof GroupPreviewSchema>
