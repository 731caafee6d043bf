/** Answers of dry runs: where a task would go, and what a change of a group would do. */
import { Type, type Static } from 'typebox'
import { count, list, mib, objectOrNull, oneOf, refTo } from './fields.ts'
import { WaitSchema } from './task.ts'

/** POST /tasks?dry_run=true. */
export const PlacementPreviewSchema = Type.Object(
  {
    dry_run: Type.Boolean({ description: 'true: nothing was submitted' }),
    starts: oneOf(['now', 'after_swap', 'later'], {
      description: 'now; after the victims have left; or later: it would wait, and wait says for what',
    }),
    placement: objectOrNull(
      Type.Object({
        node_id: Type.String(),
        node_name: Type.String(),
        gpus: list(count()),
        demand_mib: count('On each GPU'),
      }),
      'Where it would go; null when it would wait',
    ),
    victims: list(
      Type.Object({
        task_id: Type.String(),
        name: Type.String(),
        owner: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
        priority: oneOf([0, 1, 2, 3, 4]),
        gpu: count('Whose shortage chose it'),
        mib: mib('What it gives on each of its GPUs'),
      }),
      { description: 'Tasks that would be swapped out for it' },
    ),
    wait: objectOrNull(WaitSchema, 'Why it would wait; null when it would not'),
  },
  { $id: 'PlacementPreview', description: 'What a submission would do now. Nothing has changed.' },
)
export type PlacementPreviewBody = Static<typeof PlacementPreviewSchema>
export const PlacementPreviewRef = refTo<PlacementPreviewBody>('PlacementPreview')

const NodeSumSchema = Type.Object({
  nodes: count(),
  node_ids: list(Type.String(), { description: 'At most 20 are named' }),
  gpus: count(),
  physical_mib: mib('Their physical VRAM'),
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
})

const TaskSumSchema = Type.Object({
  tasks: count(),
  task_ids: list(Type.String(), { description: 'At most 20 are named' }),
})

/** What changing the members of a group would do. */
export const GroupPreviewSchema = Type.Object(
  {
    joining: NodeSumSchema,
    leaving: NodeSumSchema,
    leaves_common_pool: NodeSumSchema,
    returns_to_common_pool: NodeSumSchema,
    finishing: Type.Object(TaskSumSchema.properties, {
      description: 'Placed tasks that could not be placed there any more: they finish where they are',
    }),
    become_feasible: Type.Object(TaskSumSchema.properties, {
      description: 'Pending tasks that some node could take once empty, and none could before',
    }),
    become_infeasible: Type.Object(TaskSumSchema.properties, {
      description: 'Pending tasks that no node could ever take any more',
    }),
  },
  { $id: 'GroupPreview', description: 'What a change of groups would do now. Nothing has changed.' },
)
export type GroupPreviewBody = Static<typeof GroupPreviewSchema>
