import { Type } from 'typebox'
import type { Group } from '../../model/group.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { ask } from '../http/ask.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentGroup } from './present.ts'
import { ChangedGroupSchema, MembershipPathSchema } from './schema.ts'
import { DryRunQuerySchema } from '../config/impact-schema.ts'
import { tried } from './routes.ts'

const addNode = operation(
  {
    operationId: 'addNodeToGroup',
    role: 'operator',
    summary: 'Add a node to a group',
    description:
      'The node leaves the common pool at once. No effect if it is already in the group. With dry_run ' +
      'the response is a preview, and nothing is changed.',
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
    description:
      'Tasks on the node stay there. With dry_run the response is a preview, and nothing is changed.',
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
export function membershipRoutes(app: ApiApp, { commands, views }: ApiContext): void {
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
