import type { Node } from '../../domain/node.ts'
import type { NodeConfigChange } from '../../engine/commands.ts'
import { ask } from '../ask.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import { notFound } from '../errors.ts'
import { nodeConfigEtag, requireMatch } from '../etag.ts'
import { operation } from '../operation.ts'
import { presentNode } from '../present/node.ts'
import {
  NodeConfigChangeSchema,
  NodePageSchema,
  NodePathSchema,
  NodeQuerySchema,
  NodeRef,
  type NodeConfigChangeBody,
} from '../schema/node.ts'

const listNodes = operation({
  operationId: 'listNodes',
  role: 'viewer',
  summary: 'Registered GPU nodes, in order of registration',
  tags: ['nodes'],
  querystring: NodeQuerySchema,
  response: { 200: NodePageSchema },
})

const getNode = operation(
  { operationId: 'getNode', role: 'viewer', summary: 'One node', tags: ['nodes'], params: NodePathSchema, response: { 200: NodeRef } },
  ['not_found'],
)

const putNodeConfig = operation(
  {
    operationId: 'putNodeConfig',
    role: 'operator',
    summary: 'Set or take away the overrides of a node',
    description: 'The whole node is answered; its ETag is that of its settings.',
    tags: ['nodes'],
    params: NodePathSchema,
    body: NodeConfigChangeSchema,
    response: { 200: NodeRef },
  },
  ['not_found', 'precondition_failed', 'store_failed'],
  'specification',
)

const cordonNode = operation(
  {
    operationId: 'cordonNode',
    role: 'operator',
    summary: 'Place no new task on a node; its tasks stay',
    tags: ['nodes'],
    params: NodePathSchema,
    response: { 200: NodeRef },
  },
  ['not_found', 'store_failed'],
)

const uncordonNode = operation(
  {
    operationId: 'uncordonNode',
    role: 'operator',
    summary: 'Let a node take tasks again',
    tags: ['nodes'],
    params: NodePathSchema,
    response: { 200: NodeRef },
  },
  ['not_found', 'store_failed'],
)

const DEFAULT_LIMIT = 200

/** GET /nodes and /nodes/{node_id}, PUT /nodes/{node_id}/config (specification 4), cordon and uncordon. */
export function nodeRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  const present = (node: Node) => presentNode(node, views.config().fields)
  const known = (id: string) => {
    const node = views.node(id)
    if (node === undefined) throw notFound('node', id)
    return node
  }

  app.get('/nodes', { schema: listNodes }, ({ query: { cursor, limit = DEFAULT_LIMIT } }) => {
    const after = cursor === undefined ? -Infinity : readCursor(cursor)
    const all = [...views.nodes()].sort((a, b) => a.ordinal - b.ordinal)
    const rest = all.filter((node) => node.ordinal > after)
    const items = rest.slice(0, limit)
    const last = items.at(-1)
    const nextCursor = rest.length > limit && last !== undefined ? writeCursor(last.ordinal) : null
    return { items: items.map(present), next_cursor: nextCursor, total: all.length }
  })

  app.get('/nodes/:node_id', { schema: getNode }, ({ params }, reply) => {
    const node = known(params.node_id)
    reply.header('etag', nodeConfigEtag(node))
    return present(node)
  })

  app.put('/nodes/:node_id/config', { schema: putNodeConfig }, async ({ params, body, headers }, reply) => {
    requireMatch(headers['if-match'], nodeConfigEtag(known(params.node_id)))
    const node = await ask<Node>((answer) => commands.putNodeConfig(params.node_id, nodeConfigChange(body), answer))
    reply.header('etag', nodeConfigEtag(node))
    return present(node)
  })

  const setCordon = async (nodeId: string, isCordoned: boolean) =>
    present(await ask<Node>((answer) => commands.setCordon(known(nodeId).id, isCordoned, answer)))
  app.post('/nodes/:node_id/cordon', { schema: cordonNode }, ({ params }) => setCordon(params.node_id, true))
  app.post('/nodes/:node_id/uncordon', { schema: uncordonNode }, ({ params }) => setCordon(params.node_id, false))
}

/** null and leaving it out both clear the percentage (specification 4, rule 3); the reserve stays when it is left out. */
function nodeConfigChange(body: NodeConfigChangeBody): NodeConfigChange {
  const overcommitPercent = body.overcommit_vram_percent ?? null
  return body.safety_reserve_mib === undefined ? { overcommitPercent } : { overcommitPercent, reserveMib: body.safety_reserve_mib }
}
