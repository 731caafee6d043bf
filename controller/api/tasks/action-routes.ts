/** Operator actions on a task. */
import type { Task } from '../../model/placement.ts'
import type { AnswerTo } from '../../model/command.ts'
import { ask } from '../http/ask.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { openTask } from './open-task.ts'
import { operation } from '../http/operation.ts'
import { presentTask } from './present.ts'
import { TaskPathSchema, TaskRef } from './schema.ts'

const holdTask = operation(
  {
    operationId: 'holdTask',
    role: 'operator',
    summary: 'Put a pending task on hold until it is released',
    description:
      'No effect if the task is already on hold. A placed task cannot be put on hold: swap it out or ' +
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
    summary: 'Release a task on hold',
    description:
      'The task keeps its position in its class; time on hold does not count for ageing or for a ' +
      'reservation. No effect if the task is not on hold.',
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
      'Responds when the order is durable; the GPU server can still refuse it. The task stays swapped ' +
      'out until it wants the GPU (without signalling: until the next probe) or is swapped in by an ' +
      'operator. Refused while the task is noswap, wants the GPU or is not resident, or host memory is ' +
      'short.',
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
      'The request is durable: the task waits in the queue of its node like one that wants the GPU; ' +
      '`wait` has the reason. A swap-out by an operator cancels the request.',
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
