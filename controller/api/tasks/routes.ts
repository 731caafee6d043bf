import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { environmentRoutes } from './environment-routes.ts'
import { environmentOf, requireEnvironmentRoom } from './environment.ts'
import { attachmentRoutes } from './attachment-routes.ts'
import { assignmentRoutes, leaseRoutes, taskActionRoutes } from './action-routes.ts'
import { attemptRoutes } from './attempt-routes.ts'
import { fileRoutes } from './file-routes.ts'
import { requireWorkdir } from '../files/blob-routes.ts'
import { logRoutes } from './log-routes.ts'
import { recoveryRoutes } from './recovery-routes.ts'
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Priority } from '../../../protocol/units.ts'
import type { SubmissionKey, SubmittedOnce } from '../../model/command.ts'
import type { TaskRequest } from '../../../protocol/task.ts'
import { mayUseP0, type OwnerLimits } from '../../model/owner-limits.ts'
import { isFinal } from '../../model/task.ts'
import { callerOf, signatureOf, type Caller } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ask } from '../http/ask.ts'
import { ApiProblem, invalidField, notFound, problemOfRefusal } from '../http/errors.ts'
import { nodeIdOf, requireGroup } from '../http/names.ts'
import { operation } from '../http/operation.ts'
import { orCsv, sendCsv } from '../http/csv.ts'
import { csvOfTasks } from './task-csv.ts'
import { openTask } from './open-task.ts'
import { presentPrediction, presentTask, presentTaskRecord } from './present.ts'
import { PlacementPreviewRef } from './preview-schema.ts'
import {
  CancelQuerySchema,
  SubmissionQuerySchema,
  TaskPageSchema,
  TaskPatchSchema,
  TaskPathSchema,
  TaskQuerySchema,
  TaskRef,
  TaskRequestSchema,
  WaitingQuerySchema,
  type TaskBody,
} from './schema.ts'
import { listTasks as pageOfTasks, statesOf } from './task-list.ts'
import { readTaskCursor, writeTaskCursor, type TaskSort } from './task-order.ts'
import { taskChange, taskRequest } from './task-request.ts'
import { triedPart } from '../twin/forecasts.ts'
import { readWait, whenClosed } from './task-waits.ts'

const submitTask = operation(
  {
    operationId: 'submitTask',
    role: 'submitter',
    answerHeaders: ['Location', 'Idempotency-Replayed'],
    summary: 'Submit a task',
    description:
      'Responds when the task is stored durably. A task that can never fit is also accepted; `wait` in ' +
      'the response contains the reason. With the header Idempotency-Key (1 to 255 characters, stored ' +
      'for 24 h), a repeated request returns the task of the first request, with Idempotency-Replayed: ' +
      'true. With dry_run, nothing is submitted: the response contains the expected placement and ' +
      'victims and, with forecast, the expected start of a task that would wait. If the parameter `wait` ' +
      'is set, the response is delayed until the task has started, or until `wait` has elapsed.',
    tags: ['tasks'],
    querystring: SubmissionQuerySchema,
    body: TaskRequestSchema,
    response: { 200: PlacementPreviewRef, 201: TaskRef },
  },
  ['conflict', 'idempotency_key_reused', 'too_many_pending', 'too_many_streams', 'store_failed'],
)

const listTasks = operation(
  {
    operationId: 'listTasks',
    role: 'viewer',
    answerHeaders: ['Content-Disposition'],
    summary: 'Tasks, newest first by default',
    description:
      'Returns the tasks that match all filters. To get the next page, send `next_cursor` as `cursor`, ' +
      'with the same filters and order.',
    tags: ['tasks'],
    querystring: TaskQuerySchema,
    response: { 200: orCsv(TaskPageSchema) },
  },
  ['store_failed'],
)

const getTask = operation(
  {
    operationId: 'getTask',
    role: 'viewer',
    summary: 'Get an open or completed task',
    tags: ['tasks'],
    description:
      'If `wait` is set, the response is delayed until the task reaches the state in `until`, or until ' +
      '`wait` has elapsed.',
    params: TaskPathSchema,
    querystring: WaitingQuerySchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'too_many_streams', 'store_failed'],
)

const patchTask = operation(
  {
    operationId: 'patchTask',
    role: 'submitter',
    ownersOnly: true,
    summary: 'Change a task',
    description:
      'The body is a merge patch (RFC 7396). vram_mib, groups and on_node_loss can be changed only while ' +
      'the task is pending.',
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
    description:
      'A pending task is cancelled immediately. A placed task is stopped by its GPU server, with SIGTERM ' +
      'and, after the stop grace, SIGKILL. With `now=true`, SIGKILL is sent immediately, even if the ' +
      'task is already being stopped.',
    tags: ['tasks'],
    params: TaskPathSchema,
    querystring: CancelQuerySchema,
    response: { 202: TaskRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const DEFAULT_LIMIT = 50

/** POST and GET /tasks; GET, PATCH and DELETE /tasks/{task_id}. */
export function taskRoutes(app: ApiApp, api: ApiContext): void {
  collectionRoutes(app, api)
  listRoute(app, api)
  taskActionRoutes(app, api)
  assignmentRoutes(app, api)
  leaseRoutes(app, api)
  attachmentRoutes(app, api)
  logRoutes(app, api)
  fileRoutes(app, api)
  recoveryRoutes(app, api)
  attemptRoutes(app, api)
  environmentRoutes(app, api)
}

async function findTask(views: Views, id: string): Promise<TaskBody> {
  const task = views.openTask(id)
  if (task !== undefined) return presentTask(task, views)
  const record = await views.stored.task(id)
  if (record === null) throw notFound('task', id)
  return presentTaskRecord(record)
}

function listRoute(app: ApiApp, { views }: ApiContext): void {
  app.get('/tasks', { schema: listTasks }, async ({ query }, reply) => {
    const { state, cursor, sort = 'newest', limit = DEFAULT_LIMIT, format, ...filter } = query
    const states = statesOf(state)
    if (sort !== 'newest' && sort !== 'oldest' && states.some(isFinal)) throw unsortable(sort)
    const after = cursor === undefined ? null : readTaskCursor(sort, cursor)
    const { node, group, ...rest } = filter
    if (rest.owner !== undefined && rest.without_owner === true)
      throw invalidField('/without_owner', 'query parameter without_owner cannot be combined with owner')
    const place = {
      ...(node === undefined ? {} : { node: nodeIdOf(views, 'node', node) }),
      ...(group === undefined ? {} : { group }),
    }
    if (format === 'csv') {
      if (sort !== 'newest')
        throw invalidField(
          '/sort',
          'query parameter sort cannot be combined with format=csv, which is sorted newest first',
        )
      return sendCsv(reply, 'tasks', query, csvOfTasks(views, { ...rest, ...place, states }))
    }
    const page = await pageOfTasks(views, { ...rest, ...place, states }, { sort, after, limit })
    // Tasks may target a group that was deleted or does not exist yet.
    if (group !== undefined && cursor === undefined && page.items.length === 0 && page.next === null)
      requireGroup(views, 'group', group)
    const next_cursor = page.next === null ? null : writeTaskCursor(sort, page.next)
    return { items: page.items, next_cursor, total: page.total }
  })
}

function collectionRoutes(
  app: ApiApp,
  { access, blobs, commands, views, waits, ownerLimits, twin }: ApiContext,
): void {
  const find = (id: string): Promise<TaskBody> => findTask(views, id)

  const waited = async (
    taskId: string,
    until: 'started' | 'finished',
    ms: number,
    response: ServerResponse,
  ): Promise<void> => {
    if (ms === 0 || waits === null) return
    const isOver = () => {
      const task = views.openTask(taskId)
      return (
        task === undefined || (until === 'started' && task.state !== 'pending' && task.state !== 'assigned')
      )
    }
    await waits.wait({ taskId, isOver, ms, signal: whenClosed(response) })
  }

  const submit = async (wanted: TaskRequest, key: SubmissionKey | null): Promise<SubmittedOnce> => {
    if (key !== null) return ask<SubmittedOnce>((answer) => commands.submitOnce(wanted, key, answer))
    const { spec } = await ask<Task>((answer) => commands.submitTask(wanted, answer))
    return { taskId: spec.id, isReplay: false }
  }

  app.post('/tasks', { schema: submitTask }, async (request, reply) => {
    const { body, headers } = request
    const caller = callerOf(request)
    const { dry_run: isDryRun = false, wait = '0s', forecast } = request.query
    if (forecast !== undefined && !isDryRun)
      throw invalidField('/forecast', 'query parameter forecast requires dry_run=true')
    const waitMs = readWait(wait)
    const { name } = caller
    const wanted = taskRequest(body, name, environmentOf(body, name, access, isDryRun))
    requireEnvironmentRoom(views.openTasks(), wanted.environment ?? null, name)
    requireP0(ownerLimits, caller, wanted.priority)
    if (isDryRun) {
      const predicted = views.predict(wanted)
      if (!predicted.ok) throw problemOfRefusal(predicted.refusal)
      const wouldWait = predicted.value.when !== 'now'
      return {
        ...presentPrediction(predicted.value),
        ...(await triedPart(twin, wanted, forecast === true, wouldWait)),
      }
    }
    await requireWorkdir(blobs, wanted.workdir, name)
    const key = submissionKey(headers['idempotency-key'], name, body)
    const { taskId, isReplay } = await submit(wanted, key)
    reply.code(201).header('location', `/api/v1/tasks/${encodeURIComponent(taskId)}`)
    if (isReplay) reply.header('idempotency-replayed', 'true')
    await waited(taskId, 'started', waitMs, reply.raw)
    return find(taskId)
  })

  app.get(
    '/tasks/:task_id',
    { schema: getTask },
    async ({ params, query: { wait = '0s', until = 'finished' } }, reply) => {
      const ms = readWait(wait)
      if (ms > 0) await find(params.task_id)
      await waited(params.task_id, until, ms, reply.raw)
      return find(params.task_id)
    },
  )

  app.patch('/tasks/:task_id', { schema: patchTask }, async (request) => {
    const { params, body } = request
    requireP0(ownerLimits, callerOf(request), body.priority)
    const change = taskChange(await openTask(views, params.task_id), body)
    return presentTask(
      await ask<Task>((answer) => commands.updateTask(params.task_id, change, signatureOf(request), answer)),
      views,
    )
  })

  app.delete('/tasks/:task_id', { schema: cancelTask }, async (request, reply) => {
    const { spec } = await openTask(views, request.params.task_id)
    const order = request.query.now === true ? commands.cancelTaskNow : commands.cancelTask
    const task = await ask<Task>((answer) => order.call(commands, spec.id, signatureOf(request), answer))
    reply.code(202)
    return presentTask(task, views)
  })
}

/** @throws ApiProblem if the priority is P0 and not allowed for this caller. */
function requireP0(limits: OwnerLimits, { name, role }: Caller, priority: Priority | undefined): void {
  if (priority !== 0 || mayUseP0(limits, name, role)) return
  throw new ApiProblem(
    'forbidden',
    `Permission denied: ${name ?? 'the caller'} may not use P0. To allow it, set CONTROLLER_P0_ALLOWED.`,
  )
}

function unsortable(sort: TaskSort): ApiProblem {
  return invalidField(
    '/sort',
    `query parameter sort: ${sort} orders open tasks only; add state=pending or state=running, or sort ` +
      'by newest or oldest',
  )
}

/**
 * `Idempotency-Key`: digests of the key and of the body, so that neither a secret nor a long text is kept.
 */

const KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/

/**
 * null when none was sent. A key is its caller's own: two callers may use the same.
 * @throws ApiProblem when the header is not a key.
 */
function submissionKey(
  header: string | readonly string[] | undefined,
  caller: string | null,
  body: unknown,
): SubmissionKey | null {
  if (header === undefined) return null
  if (typeof header !== 'string' || !KEY.test(header)) {
    throw invalidField(
      '/Idempotency-Key',
      'the header Idempotency-Key must be 1 to 255 printable ASCII characters',
    )
  }
  return {
    key: digestOf(caller === null ? `-\n${header}` : `=${caller}\n${header}`),
    body: digestOf(canonical(body)),
  }
}

/** The same text for the same value, in whatever order its fields were written. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
