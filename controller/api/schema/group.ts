import { Type, type Static } from 'typebox'
import { GROUP_ID_MAX_LENGTH, GROUP_ID_PATTERN } from '../../domain/group.ts'
import { DryRunQuerySchema } from './impact.ts'
import type { GroupPreviewBody } from './preview.ts'
import { closed, count, list, mib, page, pathId, refTo } from './fields.ts'

/** A name that people choose and that stands in paths as it is. */
export const GroupIdSchema = Type.String({
  minLength: 1,
  maxLength: GROUP_ID_MAX_LENGTH,
  pattern: GROUP_ID_PATTERN,
  'x-allowed':
    'a name of 1 to 200 letters, digits, spaces inside, dots, dashes and underscores that begins with a letter or digit',
})

const description = Type.Optional(Type.String({ maxLength: 1000, default: '' }))
const nodeIds = list(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: 10_000,
  uniqueItems: true,
  description: 'Ids of nodes that are registered, or already in the group',
})

export const NewGroupSchema = closed(
  { id: GroupIdSchema, description, node_ids: Type.Optional(nodeIds) },
  // Without an example: tools that compile patterns without Unicode classes take every name for a violation
  // of the pattern of `id`.
)
/** PUT replaces the whole group, so the nodes must be named. */
export const GroupReplacementSchema = closed(
  { description, node_ids: nodeIds },
  { examples: [{ node_ids: [] }] },
)

/** Of the registered nodes of a group, or of the common pool. */
export const GroupSumsSchema = Type.Object(
  {
    nodes: count('Registered nodes'),
    nodes_up: count('Nodes that answer'),
    gpus: count('On all of these nodes'),
    physical_mib: mib('What their GPUs have'),
    committed_mib: mib('Promised to placed tasks, resident or swapped out'),
    effective_schedulable_mib: mib('Physical VRAM × (1 + overcommit percentage / 100), node by node'),
  },
  { description: 'Over all members that are registered' },
)
export type GroupSumsBody = Static<typeof GroupSumsSchema>

export const GroupSchema = Type.Object(
  {
    id: Type.String(),
    description: Type.String(),
    node_ids: list(Type.String(), {
      description: 'In order of their text; sums.nodes of them are registered',
    }),
    sums: GroupSumsSchema,
    first_nodes: list(Type.Object({ node_id: Type.String(), name: Type.String() }), {
      description: 'Of the registered ones up to 8, by name',
    }),
  },
  { $id: 'Group', description: 'A named set of nodes that tasks can target.' },
)
export type GroupBody = Static<typeof GroupSchema>
export const GroupRef = refTo<GroupBody>('Group')

/**
 * The answer to a change: the group as it is now, or with `dry_run` as it would be, and what that would do.
 */
export const ChangedGroupSchema = Type.Object({
  ...GroupSchema.properties,
  dry_run: Type.Optional(Type.Boolean({ description: 'true: nothing was changed' })),
  preview: Type.Optional(refTo<GroupPreviewBody>('GroupPreview')),
})
/** The answer to a deletion that is only tried. */
export const GroupDryRunSchema = Type.Object({
  dry_run: Type.Boolean(),
  preview: refTo<GroupPreviewBody>('GroupPreview'),
})
export type GroupDryRunBody = Static<typeof GroupDryRunSchema>

export const GroupPageSchema = Type.Object({
  ...page(GroupRef).properties,
  common_pool: Type.Object(GroupSumsSchema.properties, {
    description: 'Over all nodes that are in no group',
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
  force: Type.Optional(Type.Boolean({ default: false, description: 'Also when pending tasks target it' })),
})
