/** Operator decisions about silent servers and their tasks. */
import { Type } from 'typebox'
import type { Task } from '../../model/placement.ts'
import type { RequeueFreeze } from '../../model/controller-status.ts'
import { ask } from '../http/ask.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { presentInstantOrNull } from '../http/instant.ts'
import { presentTask } from './present.ts'
import { NodePathSchema } from '../nodes/schema.ts'
import { RequeueBodySchema, RequeueFreezeSchema } from './recovery-schema.ts'
import { TaskPathSchema, TaskRef } from './schema.ts'

const releaseFreeze = operation(
  {
    operationId: 'releaseRequeueFreeze',
    role: 'operator',
    summary: 'Declare the silent nodes dead and requeue their tasks',
    description:
      'Ends the requeue freeze, which starts when many nodes lose contact at the same time. After its ' +
      'next contact, a node can cause a freeze again. Has no effect if no freeze is active.',
    tags: ['nodes'],
    response: { 200: RequeueFreezeSchema },
  },
  ['store_failed'],
)

const forgetNode = operation(
  {
    operationId: 'forgetNode',
    role: 'operator',
    summary: 'Remove a node that will not return',
    description:
      'The request is refused while the node is up or has placed tasks. The node can register again.',
    tags: ['nodes'],
    params: NodePathSchema,
    response: { 204: Type.Null({ description: 'Forgotten' }) },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const requeueTask = operation(
  {
    operationId: 'requeueTask',
    role: 'operator',
    summary: 'Requeue a placed task',
    description:
      'The GPU server stops the task first. If the server is unreachable, set `confirm_fenced` to ' +
      'confirm that no process of the task runs on its node.',
    tags: ['tasks'],
    params: TaskPathSchema,
    body: RequeueBodySchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** POST /cluster/requeue-freeze/release, DELETE /nodes/{node_id}, POST /tasks/{task_id}/requeue. */
export function recoveryRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  app.post('/cluster/requeue-freeze/release', { schema: releaseFreeze }, async (request) => {
    const { isFrozen, since, silentNodes } = await ask<RequeueFreeze>((answer) =>
      commands.releaseRequeueFreeze(signatureOf(request), answer),
    )
    return { is_frozen: isFrozen, since: presentInstantOrNull(since), silent_nodes: silentNodes }
  })

  app.delete('/nodes/:node_id', { schema: forgetNode }, async (request, reply) => {
    await ask<null>((answer) => commands.forgetNode(request.params.node_id, signatureOf(request), answer))
    return reply.code(204).send(null)
  })

  app.post('/tasks/:task_id/requeue', { schema: requeueTask }, async (request, reply) => {
    const isFenced = request.body.confirm_fenced ?? false
    const task = await ask<Task>((answer) =>
      commands.requeueTask(request.params.task_id, isFenced, signatureOf(request), answer),
    )
    reply.code(202)
    return presentTask(task, views)
  })
}
