import type { Node } from '../../model/placement.ts'
import type { NodeConfigChange } from '../../model/command.ts'
import { ask } from '../http/ask.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { invalidField, notFound, problemOfRefusal } from '../http/errors.ts'
import { nodeConfigEtag, requireTag } from '../http/preconditions.ts'
import { changePart } from '../twin/forecasts.ts'
import { requireGroup } from '../http/names.ts'
import { sortedNodes } from './node-list.ts'
import { operation } from '../http/operation.ts'
import { orCsv, sendCsv } from '../http/csv.ts'
import { csvOfNodes } from './node-csv.ts'
import { pageOf } from '../http/page-bytes.ts'
import { presentImpact } from '../config/present-impact.ts'
import { presentNode, readingsOf } from './present.ts'
import { DryRunQuerySchema } from '../config/impact-schema.ts'
import {
  ChangedNodeSchema,
  DrainQuerySchema,
  NodeConfigChangeSchema,
  NodePageSchema,
  NodePathSchema,
  NodeQuerySchema,
  NodeRef,
  type NodeConfigChangeBody,
} from './schema.ts'

const listNodes = operation({
  operationId: 'listNodes',
  role: 'viewer',
  answerHeaders: ['Content-Disposition'],
  summary: 'Registered GPU nodes, by default in order of registration',
  description:
    'A page is limited to 100 KB, so it may have fewer nodes than `limit` and still have a ' +
    '`next_cursor`. A cursor is valid only for the same filters and order.',
  tags: ['nodes'],
  querystring: NodeQuerySchema,
  response: { 200: orCsv(NodePageSchema) },
})

const getNode = operation(
  {
    operationId: 'getNode',
    role: 'viewer',
    answerHeaders: ['ETag'],
    summary: 'One node',
    description: 'Capacity, effective settings, usage and state of a node, with its GPUs.',
    tags: ['nodes'],
    params: NodePathSchema,
    response: { 200: NodeRef },
  },
  ['not_found'],
)

const putNodeConfig = operation(
  {
    operationId: 'putNodeConfig',
    role: 'operator',
    answerHeaders: ['ETag'],
    summary: 'Set or remove the overrides of a node',
    description:
      'Returns the node with the ETag of its settings. Lowering a setting does not swap out tasks; ' +
      'vram.over_committed_mib and reserve_deficit_mib report the excess. With dry_run, returns the ' +
      'resulting node and the impact on the cluster without applying the change.',
    tags: ['nodes'],
    params: NodePathSchema,
    querystring: DryRunQuerySchema,
    body: NodeConfigChangeSchema,
    response: { 200: ChangedNodeSchema },
  },
  ['not_found', 'precondition_failed', 'store_failed'],
  'specification',
)

const cordonNode = operation(
  {
    operationId: 'cordonNode',
    role: 'operator',
    summary: 'Stop new placements on a node; its tasks stay',
    description: 'Idempotent. Placed tasks continue to run and to be swapped.',
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
    summary: 'Allow placements on a node again',
    description:
      'Idempotent. The node is considered in the next scheduling cycle. If the node is being drained, ' +
      'the drain ends.',
    tags: ['nodes'],
    params: NodePathSchema,
    response: { 200: NodeRef },
  },
  ['not_found', 'store_failed'],
)

const drainNode = operation(
  {
    operationId: 'drainNode',
    role: 'operator',
    summary: 'Drain a node: stop new placements, and let its tasks end or move',
    description:
      'The node is cordoned; uncordon ends the drain. Tasks end on their own; with requeue=true, tasks ' +
      'whose on_node_loss is requeue are stopped after `after_seconds` and wait for another node. ' +
      '`drain.tasks_left` is the number of remaining tasks.',
    tags: ['nodes'],
    params: NodePathSchema,
    querystring: DrainQuerySchema,
    response: { 202: NodeRef },
  },
  ['not_found', 'store_failed'],
)

const DEFAULT_LIMIT = 200

/**
 * GET /nodes and /nodes/{node_id}, PUT /nodes/{node_id}/config (specification 4), cordon, uncordon and drain.
 */
export function nodeRoutes(app: ApiApp, { commands, views, twin }: ApiContext): void {
  const present = (node: Node) =>
    presentNode(node, views.config().fields, readingsOf(views.node(node.id) ?? node, views))
  const known = (id: string) => {
    const node = views.node(id)
    if (node === undefined) throw notFound('node', id)
    return node
  }

  app.get('/nodes', { schema: listNodes }, ({ query }, reply) => {
    const {
      cursor = null,
      limit = DEFAULT_LIMIT,
      sort = 'registered',
      order = null,
      format,
      ...filter
    } = query
    if (filter.group !== undefined) requireGroup(views, 'group', filter.group)
    const { rest, total, cursorAfter } = sortedNodes(views, filter, { sort, order, cursor })
    if (format === 'csv') return sendCsv(reply, 'nodes', query, csvOfNodes(rest, present))
    const items = pageOf(rest.slice(0, limit), present)
    return { items, next_cursor: cursorAfter(items.length), total }
  })

  app.get('/nodes/:node_id', { schema: getNode }, ({ params }, reply) => {
    const node = known(params.node_id)
    reply.header('etag', nodeConfigEtag(node))
    return present(node)
  })

  app.put('/nodes/:node_id/config', { schema: putNodeConfig }, async (request, reply) => {
    const { params, query, body, headers } = request
    requireTag(headers, nodeConfigEtag(known(params.node_id)))
    if (query.dry_run === true) {
      const planned = views.planNodeConfig(params.node_id, nodeConfigChange(body))
      if (!planned.ok) throw problemOfRefusal(planned.refusal)
      reply.header('etag', nodeConfigEtag(known(params.node_id)))
      const planning = present(planned.value.value)
      const part = await changePart(
        twin,
        { node: { id: params.node_id, ...nodeConfigChange(body) } },
        query.forecast ?? true,
      )
      return { ...planning, dry_run: true, impact: presentImpact(planned.value.impact, part) }
    }
    const node = await ask<Node>((answer) =>
      commands.putNodeConfig(params.node_id, nodeConfigChange(body), signatureOf(request), answer),
    )
    reply.header('etag', nodeConfigEtag(node))
    return present(node)
  })

  const setCordon = async (nodeId: string, isCordoned: boolean, by: string) =>
    present(await ask<Node>((answer) => commands.setCordon(known(nodeId).id, isCordoned, by, answer)))
  app.post('/nodes/:node_id/cordon', { schema: cordonNode }, (request) =>
    setCordon(request.params.node_id, true, signatureOf(request)),
  )
  app.post('/nodes/:node_id/uncordon', { schema: uncordonNode }, (request) =>
    setCordon(request.params.node_id, false, signatureOf(request)),
  )

  app.post('/nodes/:node_id/drain', { schema: drainNode }, async (request, reply) => {
    const { requeue = false, after_seconds: afterSeconds } = request.query
    if (afterSeconds !== undefined && !requeue) {
      throw invalidField('/after_seconds', 'query parameter after_seconds requires requeue=true')
    }
    const moveAfterMs = requeue ? 1000 * (afterSeconds ?? 0) : null
    const { id } = known(request.params.node_id)
    const node = await ask<Node>((answer) =>
      commands.drainNode(id, moveAfterMs, signatureOf(request), answer),
    )
    reply.code(202)
    return present(node)
  })
}

/**
 * null and omission both clear the percentage (specification 4, rule 3); an omitted reserve stays unchanged.
 */
function nodeConfigChange(body: NodeConfigChangeBody): NodeConfigChange {
  const overcommitPercent = body.overcommit_vram_percent ?? null
  return body.safety_reserve_mib === undefined
    ? { overcommitPercent }
    : { overcommitPercent, reserveMib: body.safety_reserve_mib }
}
