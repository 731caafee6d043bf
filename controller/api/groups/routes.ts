import { Type } from 'typebox'
import type { Group } from '../../model/group.ts'
import type { Views } from '../../query/views.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { signatureOf } from '../auth/caller.ts'
import { DryRunQuerySchema } from '../config/impact-schema.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ask } from '../http/ask.ts'
import { ApiProblem, invalidFields, notFound } from '../http/errors.ts'
import { canonicalId } from '../http/names.ts'
import { operation } from '../http/operation.ts'
import { requirePresence } from '../http/preconditions.ts'
import { presentGroup, presentGroupPreview, presentSums } from './present.ts'
import {
  ChangedGroupSchema,
  GroupDeletionQuerySchema,
  GroupDryRunSchema,
  GroupPageSchema,
  GroupPathSchema,
  GroupRef,
  GroupReplacementSchema,
  MembershipPathSchema,
  NewGroupSchema,
} from './schema.ts'

const listGroups = operation({
  operationId: 'listGroups',
  role: 'viewer',
  summary: 'All groups, by name',
  description: 'Returns the nodes and totals of each group, and the totals of the common pool.',
  tags: ['groups'],
  response: { 200: GroupPageSchema },
})

const createGroup = operation(
  {
    operationId: 'createGroup',
    role: 'operator',
    answerHeaders: ['Location'],
    summary: 'Create a group',
    description: 'The nodes of the group leave the common pool immediately.',
    tags: ['groups'],
    body: NewGroupSchema,
    response: { 201: GroupRef },
  },
  ['conflict', 'store_failed'],
)

const getGroup = operation(
  {
    operationId: 'getGroup',
    role: 'viewer',
    summary: 'One group',
    description: 'Returns the nodes and totals of the group.',
    tags: ['groups'],
    params: GroupPathSchema,
    response: { 200: GroupRef },
  },
  ['not_found'],
)

const putGroup = operation(
  {
    operationId: 'putGroup',
    role: 'operator',
    summary: 'Create or replace a group',
    description:
      'With If-None-Match: *, the request only creates a group; with If-Match: *, it only replaces one ' +
      '(otherwise 412). Placed tasks finish on their node, regardless of the groups that the node joins ' +
      'or leaves. With dry_run, the response (200) lists the nodes that would leave or return to the ' +
      'common pool, the tasks that would finish in place, and the pending tasks that could be placed. The ' +
      'change is not applied.',
    tags: ['groups'],
    params: GroupPathSchema,
    querystring: DryRunQuerySchema,
    body: GroupReplacementSchema,
    response: { 200: ChangedGroupSchema, 201: ChangedGroupSchema },
  },
  ['precondition_failed', 'store_failed'],
)

const deleteGroup = operation(
  {
    operationId: 'deleteGroup',
    role: 'operator',
    summary: 'Delete a group',
    description:
      'Nodes that are in no other group return to the common pool. The request is refused while pending ' +
      'tasks target the group, unless `force` is set. With dry_run, returns a preview (200) without ' +
      'applying the change.',
    tags: ['groups'],
    params: GroupPathSchema,
    querystring: GroupDeletionQuerySchema,
    response: { 200: GroupDryRunSchema, 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** Maximum number of faults reported for a request. */
const MAX_FAULTS = 20

/** GET and POST /groups; GET, PUT and DELETE /groups/{group_id}. */
export function groupRoutes(app: ApiApp, api: ApiContext): void {
  collectionRoutes(app, api)
  membershipRoutes(app, api)
}

function collectionRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  const put = (group: Group, ifAbsent: boolean, by: string) =>
    ask<Group>((answer) => commands.putGroup(group, ifAbsent, by, answer))

  app.get('/groups', { schema: listGroups }, () => {
    const groups = [...views.groups()].sort((a, b) => byCodeUnits(a.id, b.id))
    const items = groups.map((group) => presentGroup(group, views))
    const commonPool = [...views.nodes()].filter(({ groups: own }) => own.length === 0)
    return { items, next_cursor: null, total: groups.length, common_pool: presentSums(commonPool) }
  })

  app.post('/groups', { schema: createGroup }, async (request, reply) => {
    const { body } = request
    requireKnownNodes(views, body.node_ids ?? [], views.group(body.id))
    const group = await put(groupOf(body.id, body.description, body.node_ids), true, signatureOf(request))
    reply.code(201).header('location', `/api/v1/groups/${encodeURIComponent(group.id)}`)
    return presentGroup(group, views)
  })

  app.get('/groups/:group_id', { schema: getGroup }, ({ params }) => {
    const group = views.group(params.group_id)
    if (group === undefined) throw notFound('group', params.group_id)
    return presentGroup(group, views)
  })

  app.put('/groups/:group_id', { schema: putGroup }, async (request, reply) => {
    const { params, query, body, headers } = request
    requireKnownNodes(views, body.node_ids, views.group(params.group_id))
    const isNew = views.group(params.group_id) === undefined
    requirePresence(headers, 'group', !isNew)
    if (query.dry_run === true) return tried(views, groupOf(params.group_id, body.description, body.node_ids))
    const group = await put(
      groupOf(params.group_id, body.description, body.node_ids),
      false,
      signatureOf(request),
    )
    reply.code(isNew ? 201 : 200)
    return presentGroup(group, views)
  })

  app.delete('/groups/:group_id', { schema: deleteGroup }, async (request, reply) => {
    const { params, query } = request
    if (query.dry_run === true) {
      if (views.group(params.group_id) === undefined) throw notFound('group', params.group_id)
      return { dry_run: true, preview: presentGroupPreview(views.previewGroup(params.group_id, null)) }
    }
    await ask<null>((answer) =>
      commands.deleteGroup(params.group_id, query.force ?? false, signatureOf(request), answer),
    )
    return reply.code(204).send(null)
  })
}

/** Returns the resulting group and a preview. */
function tried(views: Views, group: Group) {
  return {
    ...presentGroup(group, views),
    dry_run: true,
    preview: presentGroupPreview(views.previewGroup(group.id, group.nodeIds)),
  }
}

/** Forgotten nodes may stay in a group, because a client that replaces it sends back the nodes it read. */
function requireKnownNodes(views: Views, nodeIds: readonly string[], group: Group | undefined): void {
  const members = new Set(group?.nodeIds)
  const faults = nodeIds.flatMap((id, i) =>
    views.node(canonicalId(id)) !== undefined || members.has(canonicalId(id))
      ? []
      : [
          {
            pointer: `/node_ids/${i}`,
            detail: `node_ids[${i}] must be the ID of a node, got ${JSON.stringify(id)}`,
          },
        ],
  )
  if (faults.length > 0) throw invalidFields(faults.slice(0, MAX_FAULTS))
}

/** Node ids in code-unit order, as the domain keeps them. */
function groupOf(id: string, description: string | undefined, nodeIds: readonly string[] | undefined): Group {
  return {
    id,
    description: description ?? '',
    nodeIds: [...new Set((nodeIds ?? []).map(canonicalId))].sort(byCodeUnits),
  }
}

const addNode = operation(
  {
    operationId: 'addNodeToGroup',
    role: 'operator',
    summary: 'Add a node to a group',
    description:
      'The node leaves the common pool immediately. Has no effect if the node is already in the group. ' +
      'With dry_run, returns a preview without applying the change.',
    tags: ['groups'],
    params: MembershipPathSchema,
    querystring: DryRunQuerySchema,
    response: { 200: ChangedGroupSchema },
  },
  ['not_found', 'store_failed'],
)

const removeNode = operation(
  {
    operationId: 'removeNodeFromGroup',
    role: 'operator',
    summary: 'Remove a node from a group',
    description: 'Tasks on the node stay there. With dry_run, returns a preview without applying the change.',
    tags: ['groups'],
    params: MembershipPathSchema,
    querystring: DryRunQuerySchema,
    response: { 200: ChangedGroupSchema, 204: Type.Null({ description: 'Removed' }) },
  },
  ['not_found', 'store_failed'],
)

/**
 * PUT and DELETE /groups/{group_id}/nodes/{node_id}. There is no await between reading and writing the group.
 */
function membershipRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  const known = (id: string) => {
    const group = views.group(id)
    if (group === undefined) throw notFound('group', id)
    return group
  }
  const replaceNodes = (group: Group, nodeIds: readonly string[], by: string) =>
    ask<Group>((answer) => commands.putGroup({ ...group, nodeIds }, false, by, answer))

  app.put('/groups/:group_id/nodes/:node_id', { schema: addNode }, async (request) => {
    const { params, query } = request
    const group = known(params.group_id)
    if (views.node(params.node_id) === undefined) throw notFound('node', params.node_id)
    const isThere = group.nodeIds.includes(params.node_id)
    const nodeIds = isThere ? group.nodeIds : [...group.nodeIds, params.node_id].sort(byCodeUnits)
    if (query.dry_run === true) return tried(views, { ...group, nodeIds })
    return presentGroup(isThere ? group : await replaceNodes(group, nodeIds, signatureOf(request)), views)
  })

  app.delete('/groups/:group_id/nodes/:node_id', { schema: removeNode }, async (request, reply) => {
    const { params, query } = request
    const group = known(params.group_id)
    const rest = group.nodeIds.filter((id) => id !== params.node_id)
    if (rest.length === group.nodeIds.length) {
      throw new ApiProblem(
        'not_found',
        `Node ${JSON.stringify(params.node_id)} is not in group ${JSON.stringify(group.id)}.`,
      )
    }
    if (query.dry_run === true) return tried(views, { ...group, nodeIds: rest })
    await replaceNodes(group, rest, signatureOf(request))
    return reply.code(204).send(null)
  })
}
