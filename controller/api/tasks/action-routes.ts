/** Operator actions on a task. */
import type { Placement, Task } from '../../model/placement.ts'
import type { AnswerTo, KeptLease } from '../../model/command.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ask } from '../http/ask.ts'
import { ApiProblem, notFound } from '../http/errors.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import { AssignmentSchema, type AssignmentBody } from './assignment-schema.ts'
import { KeepaliveSchema, KeptLeaseSchema } from './lease-schema.ts'
import { openTask } from './open-task.ts'
import { portAddresses } from './port-addresses.ts'
import { presentPlacement, presentTask } from './present.ts'
import { TaskPathSchema, TaskRef } from './schema.ts'

const holdTask = operation(
  {
    operationId: 'holdTask',
    role: 'operator',
    summary: 'Put a pending task on hold until it is released',
    description:
      'Has no effect if the task is already on hold. A placed task cannot be put on hold: swap it out or ' +
      'requeue it.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const releaseTask = operation(
  {
    operationId: 'releaseTask',
    role: 'operator',
    summary: 'Release a task that is on hold',
    description:
      'The task keeps its position in its priority class. Time on hold does not count toward ageing or a ' +
      'reservation. Has no effect if the task is not on hold.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const swapOutTask = operation(
  {
    operationId: 'swapOutTask',
    role: 'operator',
    summary: 'Swap an idle task out of VRAM',
    description:
      'Responds when the command is stored durably; the GPU server can still refuse it. The task stays ' +
      'swapped out until it wants the GPU (if it cannot signal that: until the next probe) or an ' +
      'operator swaps it in. The request is refused if the task is noswap, wants the GPU or is not ' +
      'resident, or if the node does not have enough host memory.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const swapInTask = operation(
  {
    operationId: 'swapInTask',
    role: 'operator',
    summary: 'Swap a task in',
    description:
      'The request is stored durably. The task waits in the queue of its node like a task that wants the ' +
      'GPU; `wait` contains the reason. A swap-out by an operator cancels the request.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

type Action = (id: string, by: string, answer: AnswerTo<Task>) => void

/** POST /tasks/{task_id}/hold, /release, /swap-out and /swap-in. */
export function taskActionRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  const carryOut = async (id: string, by: string, action: Action) => {
    const { spec } = await openTask(views, id)
    return presentTask(await ask<Task>((answer) => action(spec.id, by, answer)), views)
  }

  app.post('/tasks/:task_id/hold', { schema: holdTask }, (request) =>
    carryOut(request.params.task_id, signatureOf(request), (id, by, answer) =>
      commands.holdTask(id, by, answer),
    ),
  )
  app.post('/tasks/:task_id/release', { schema: releaseTask }, (request) =>
    carryOut(request.params.task_id, signatureOf(request), (id, by, answer) =>
      commands.releaseTask(id, by, answer),
    ),
  )
  app.post('/tasks/:task_id/swap-out', { schema: swapOutTask }, (request, reply) => {
    reply.code(202)
    return carryOut(request.params.task_id, signatureOf(request), (id, by, answer) =>
      commands.swapOutTask(id, by, answer),
    )
  })
  app.post('/tasks/:task_id/swap-in', { schema: swapInTask }, (request, reply) => {
    reply.code(202)
    return carryOut(request.params.task_id, signatureOf(request), (id, by, answer) =>
      commands.swapInTask(id, by, answer),
    )
  })
}

const getAssignment = operation(
  {
    operationId: 'getAssignment',
    role: 'viewer',
    summary: 'Current placement of a task',
    description: 'Returns 404 for a pending or completed task, which is not assigned to a node.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: AssignmentSchema },
  },
  ['not_found', 'store_failed'],
)

/** GET /tasks/{task_id}/assignment. */
export function assignmentRoutes(app: ApiApp, { views, logs }: ApiContext): void {
  app.get('/tasks/:task_id/assignment', { schema: getAssignment }, async ({ params }) => {
    const task = views.openTask(params.task_id)
    if (task?.placement) return presentAssignment(task.placement, await portAddresses(task.placement, logs))
    const state = task?.state ?? (await views.stored.task(params.task_id))?.state
    if (state === undefined) throw notFound('task', params.task_id)
    throw new ApiProblem('not_found', `The task is ${state} and not assigned to a node.`)
  })
}

function presentAssignment(placement: Placement, ports: AssignmentBody['ports']): AssignmentBody {
  const { task, node } = placement
  return {
    task_id: task.spec.id,
    state: task.state as AssignmentBody['state'],
    node_status: node.status,
    attempt: task.attempt,
    generation: placement.generation,
    residency: placement.residency,
    noswap: placement.noswap,
    on_node_loss: task.spec.onNodeLoss,
    ...presentPlacement(placement),
    ports,
  }
}

const keepalive = operation(
  {
    operationId: 'keepTaskAlive',
    role: 'submitter',
    ownersOnly: true,
    routine: true,
    summary: 'Renew a lease, and report whether it wants the GPU',
    description: 'A lease is a task without a command. It ends after 60 s without a renewal.',
    tags: ['tasks'],
    params: TaskPathSchema,
    body: KeepaliveSchema,
    response: { 200: KeptLeaseSchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** POST /tasks/{task_id}/keepalive. */
export function leaseRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  app.post('/tasks/:task_id/keepalive', { schema: keepalive }, async ({ params, body }) => {
    const { spec } = await openTask(views, params.task_id)
    const { task, expiresAt } = await ask<KeptLease>((answer) =>
      commands.keepalive(spec.id, body.busy ?? null, answer),
    )
    return {
      task_id: spec.id,
      state: task.state,
      residency: task.placement?.residency ?? ('none' as const),
      at: presentInstant(views.now()),
      expires_at: presentInstantOrNull(expiresAt),
    }
  })
}
