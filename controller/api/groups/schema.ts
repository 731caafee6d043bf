import { Type, type Static } from 'typebox'
import { GROUP_ID_MAX_LENGTH, GROUP_ID_PATTERN } from '../../model/group.ts'
import { DryRunQuerySchema } from '../config/impact-schema.ts'
import { closed, count, list, mib, page, pathId, refTo } from '../http/fields-schema.ts'

/** A name chosen by users; it appears in paths without encoding. */
export const GroupIdSchema = Type.String({
  minLength: 1,
  maxLength: GROUP_ID_MAX_LENGTH,
  pattern: GROUP_ID_PATTERN,
  'x-allowed':
    'a name of 1 to 200 letters, digits, spaces, dots, dashes and underscores, starting with a letter or ' +
    'digit and not ending with a space',
})

const description = Type.Optional(Type.String({ maxLength: 1000, default: '' }))
const nodeIds = list(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: 10_000,
  uniqueItems: true,
  description: 'IDs of nodes that are registered or already in the group',
})

export const NewGroupSchema = closed(
  { id: GroupIdSchema, description, node_ids: Type.Optional(nodeIds) },
  // Without an example: tools that compile patterns without Unicode classes reject every name by the
  // pattern of `id`.
)
/** PUT replaces the whole group, so the nodes must be named. */
export const GroupReplacementSchema = closed(
  { description, node_ids: nodeIds },
  { examples: [{ node_ids: [] }] },
)

/** Sums over the registered nodes of a group or of the common pool. */
const GroupSumsSchema = Type.Object(
  {
    nodes: count('Registered nodes'),
    nodes_up: count('Nodes that are up'),
    gpus: count('GPUs of the registered nodes'),
    physical_mib: mib('Physical VRAM of these GPUs'),
    committed_mib: mib('Committed to placed tasks, resident or swapped out'),
    effective_schedulable_mib: mib(
      'Physical VRAM × (1 + overcommit percentage / 100), summed over the nodes',
    ),
  },
  { description: 'Totals for all registered members' },
)
export type GroupSumsBody = Static<typeof GroupSumsSchema>

export const GroupSchema = Type.Object(
  {
    id: Type.String(),
    description: Type.String(),
    node_ids: list(Type.String(), {
      description: 'Sorted as text; `sums.nodes` is the number of registered ones',
    }),
    sums: GroupSumsSchema,
    first_nodes: list(Type.Object({ node_id: Type.String(), name: Type.String() }), {
      description: 'Up to 8 registered nodes, by name',
    }),
  },
  { $id: 'Group', description: 'A named set of nodes that tasks can target.' },
)
export type GroupBody = Static<typeof GroupSchema>
export const GroupRef = refTo<GroupBody>('Group')

const NodeSumSchema = Type.Object({
  nodes: count(),
  node_ids: list(Type.String(), { description: 'At most 20 IDs' }),
  gpus: count(),
  physical_mib: mib('Physical VRAM of these nodes'),
  effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100)'),
})

const TaskSumSchema = Type.Object({
  tasks: count(),
  task_ids: list(Type.String(), { description: 'At most 20 IDs' }),
})

/** Effects of changing the members of a group. */
export const GroupPreviewSchema = Type.Object(
  {
    joining: NodeSumSchema,
    leaving: NodeSumSchema,
    leaves_common_pool: NodeSumSchema,
    returns_to_common_pool: NodeSumSchema,
    finishing: Type.Object(TaskSumSchema.properties, {
      description: 'Placed tasks that could no longer be placed on their node; they finish there',
    }),
    become_feasible: Type.Object(TaskSumSchema.properties, {
      description:
        'Pending tasks that do not fit on any node now but would fit on an empty node after the change',
    }),
    become_infeasible: Type.Object(TaskSumSchema.properties, {
      description: 'Pending tasks that would no longer fit on any node, even if it is empty',
    }),
  },
  {
    $id: 'GroupPreview',
    description: 'Effects that a group change would have now. The change was not applied.',
  },
)
export type GroupPreviewBody = Static<typeof GroupPreviewSchema>

/**
 * The response to a change: the changed group, or with `dry_run` the resulting group and a preview.
 */
export const ChangedGroupSchema = Type.Object({
  ...GroupSchema.properties,
  dry_run: Type.Optional(Type.Boolean({ description: 'true: nothing was changed' })),
  preview: Type.Optional(refTo<GroupPreviewBody>('GroupPreview')),
})
/** The response to a dry run of a deletion. */
export const GroupDryRunSchema = Type.Object({
  dry_run: Type.Boolean(),
  preview: refTo<GroupPreviewBody>('GroupPreview'),
})
export type GroupDryRunBody = Static<typeof GroupDryRunSchema>

export const GroupPageSchema = Type.Object({
  ...page(GroupRef).properties,
  common_pool: Type.Object(GroupSumsSchema.properties, {
    description: 'Totals for all nodes without a group',
  }),
})
export type GroupPageBody = Static<typeof GroupPageSchema>
export const GroupPathSchema = Type.Object({ group_id: GroupIdSchema })
export const MembershipPathSchema = Type.Object({
  group_id: GroupIdSchema,
  node_id: pathId('UUID of the node'),
})
export const GroupDeletionQuerySchema = closed({
  dry_run: DryRunQuerySchema.properties.dry_run,
  force: Type.Optional(
    Type.Boolean({ default: false, description: 'Delete the group even if pending tasks target it' }),
  ),
})
