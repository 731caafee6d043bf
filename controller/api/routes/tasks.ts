import type { Task } from '../../domain/task.ts'
import { ask } from '../ask.ts'
import { callerOf, signatureOf } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import { notFound } from '../errors.ts'
import { openTask } from '../open-task.ts'
import { operation } from '../operation.ts'
import { presentTask, presentTaskRecord } from '../present/task.ts'
import { TaskPageSchema, TaskPatchSchema, TaskPathSchema, TaskQuerySchema, TaskRef, TaskRequestSchema } from '../schema/task.ts'
import { listTasks as pageOfTasks, statesOf } from '../task-list.ts'
import { taskChange, taskRequest } from '../task-request.ts'

const submitTask = operation(
  {
    operationId: 'submitTask',
    role: 'submitter',
    summary: 'Ask for GPU time',
    description: 'Answered when the task is durable. A task that can never fit is accepted too, and its wait says so.',
    tags: ['tasks'],
    body: TaskRequestSchema,
    response: { 201: TaskRef },
  },
  ['too_many_pending', 'store_failed'],
)

const listTasks = operation(
  {
    operationId: 'listTasks',
    role: 'viewer',
    summary: 'Tasks, newest submission first',
    tags: ['tasks'],
    querystring: TaskQuerySchema,
    response: { 200: TaskPageSchema },
  },
  ['store_failed'],
)

const getTask = operation(
  {
    operationId: 'getTask',
    role: 'viewer',
    summary: 'One task, open or final',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'store_failed'],
)

const patchTask = operation(
  {
    operationId: 'patchTask',
    role: 'submitter',
    ownersOnly: true,
    summary: 'Change a task',
    description: 'A merge patch (RFC 7396); vram_mib, groups and on_node_loss only while it is pending.',
    tags: ['tasks'],
    consumes: ['application/json', 'application/merge-patch+json'],
    params: TaskPathSchema,
    body: TaskPatchSchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const cancelTask = operation(
  {
    operationId: 'cancelTask',
    role: 'submitter',
    ownersOnly: true,
    summary: 'Cancel a task',
    description: 'A pending task is cancelled at once; a placed one is stopped by its GPU server.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const DEFAULT_LIMIT = 50

/** POST and GET /tasks; GET, PATCH and DELETE /tasks/{task_id}. */
export function taskRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  app.post('/tasks', { schema: submitTask }, async (request, reply) => {
    const wanted = taskRequest(request.body, callerOf(request).name)
    const task = await ask<Task>((answer) => commands.submitTask(wanted, answer))
    reply.code(201).header('location', `/api/v1/tasks/${encodeURIComponent(task.spec.id)}`)
    return presentTask(task, views)
  })

  app.get('/tasks', { schema: listTasks }, async ({ query: { state, cursor, limit = DEFAULT_LIMIT, ...filter } }) => {
    const before = cursor === undefined ? null : readCursor(cursor)
    const page = await pageOfTasks(views, { ...filter, states: statesOf(state) }, before, limit)
    const next_cursor = page.nextBefore === null ? null : writeCursor(page.nextBefore)
    return { items: page.items, next_cursor, total: page.total }
  })

  app.get('/tasks/:task_id', { schema: getTask }, async ({ params }) => {
    const task = views.openTask(params.task_id)
    if (task !== undefined) return presentTask(task, views)
    const record = await views.stored.task(params.task_id)
    if (record === null) throw notFound('task', params.task_id)
    return presentTaskRecord(record)
  })

  app.patch('/tasks/:task_id', { schema: patchTask }, async ({ params, body }) => {
    const change = taskChange(await openTask(views, params.task_id), body)
    return presentTask(await ask<Task>((answer) => commands.updateTask(params.task_id, change, answer)), views)
  })

  app.delete('/tasks/:task_id', { schema: cancelTask }, async (request, reply) => {
    const { spec } = await openTask(views, request.params.task_id)
    const task = await ask<Task>((answer) => commands.cancelTask(spec.id, signatureOf(request), answer))
    reply.code(202)
    return presentTask(task, views)
  })
}
