/** What an operator does with one task by hand. */
import type { Task } from '../../domain/task.ts'
import type { AnswerTo } from '../../engine/commands/commands.ts'
import { ask } from '../ask.ts'
import { signatureOf } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { openTask } from '../open-task.ts'
import { operation } from '../operation.ts'
import { presentTask } from '../present/task.ts'
import { TaskPathSchema, TaskRef } from '../schema/task.ts'

const holdTask = operation(
  {
    operationId: 'holdTask',
    role: 'operator',
    summary: 'Hold a pending task back: it is not placed before it is released',
    description:
      'Harmless when it is held already. A placed task cannot be held: swap it out, or requeue it.',
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
    summary: 'Let a held task be placed again',
    description:
      'It keeps its place among its class; how long it was held counts neither for ageing nor for a reservation. Harmless when it is not held.',
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
      'Answered when the order is durable; its GPU server has the last word. It stays out until it wants the GPU (where nothing can signal that: until the next probe) or is swapped in by hand. Refused with the reason while it is noswap, wants the GPU, is not resident, or host memory is missing.',
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
    summary: 'Let a swapped-out task return to VRAM',
    description:
      'The wish is durable: it waits in the queue of its node like a task that wants the GPU, and its `wait` says for what. A swap-out by hand takes the wish back.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

type Deed = (id: string, by: string, answer: AnswerTo<Task>) => void

/** POST /tasks/{task_id}/hold, /release, /swap-out and /swap-in. */
export function taskActionRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  const carryOut = async (id: string, by: string, deed: Deed) => {
    const { spec } = await openTask(views, id)
    return presentTask(await ask<Task>((answer) => deed(spec.id, by, answer)), views)
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
