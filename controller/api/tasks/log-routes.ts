import { setTimeout as sleep } from 'node:timers/promises'
import type { LogChunk, LogStream } from '../../../protocol/messages.ts'
import type { TaskLogs } from '../../ports/task-logs.ts'
import type { Views } from '../../query/views.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import {
  EventStreams,
  HEARTBEAT_MS,
  SSE_HEARTBEAT,
  lastEventId,
  sseEvent,
} from '../http/server-sent-events.ts'
import { LOG_DEFAULTS, LogQuerySchema, LogSchema, type LogBody, type LogEndBody } from './log-schema.ts'
import { logSourceOf, type LogSource } from './log-source.ts'
import { TaskPathSchema } from './schema.ts'

const readLog = operation(
  {
    operationId: 'readLog',
    role: 'submitter',
    answerHeaders: ['X-Accel-Buffering'],
    ownersOnly: true,
    summary: 'Output of the latest attempt of a task; a stream with follow=true',
    description:
      'The output is read from the GPU server of the attempt, which keeps a limited amount of output for ' +
      'a limited time.',
    tags: ['tasks'],
    params: TaskPathSchema,
    querystring: LogQuerySchema,
    response: { 200: LogSchema },
  },
  ['not_found', 'conflict', 'logs_unavailable', 'too_many_reads', 'too_many_streams', 'store_failed'],
)

/** GET /tasks/{task_id}/logs. */
export function logRoutes(app: ApiApp, { views, logs, fleet, streams }: ApiContext): void {
  const followers = new EventStreams()

  // No HEAD route: Fastify would read a possibly endless stream to its end.
  app.get('/tasks/:task_id/logs', { schema: readLog, exposeHeadRoute: false }, async (request, reply) => {
    const { params, query, headers } = request
    const { stream, offset, max_bytes: maxBytes } = { ...LOG_DEFAULTS, ...query }
    const source = await logSourceOf(views, params.task_id)
    if (logs === null || fleet === 'simulated') throw noLogs(fleet)
    const taskId = params.task_id
    if (query.follow === true) {
      const from = lastEventId(headers['last-event-id']) ?? offset
      streams.take(request, reply)
      return followers.send(reply, async function* (gone) {
        // Confirms the connection to the reader at once.
        yield SSE_HEARTBEAT
        yield* followLog(views, logs, { taskId, stream, offset: from, maxBytes }, gone)
      }) as never
    }
    if (source === null)
      throw new ApiProblem('conflict', 'The task has not been placed yet, so it has no output.')
    const answer = await logs.read(source.nodeId, taskId, source.attempt, stream, offset, maxBytes)
    if (answer === null)
      throw unavailable('The GPU server that has the output does not respond. Try again later.')
    if ('refused' in answer) throw refused(answer.refused)
    return presentLog(answer, source.nodeId)
  })
}

function noLogs(fleet: ApiContext['fleet']): ApiProblem {
  if (fleet === 'simulated')
    return new ApiProblem('conflict', 'The fleet is simulated: its tasks have no output.')
  return unavailable('This controller is not connected to GPU servers.')
}

function refused(reason: string): ApiProblem {
  if (reason === 'too_many_reads') {
    const detail = 'Too many output reads are in progress on the GPU server. Try again in 1 s.'
    return new ApiProblem('too_many_reads', detail, { headers: { 'retry-after': '1' } })
  }
  return new ApiProblem('not_found', `The GPU server has no output of this attempt (${reason}).`)
}

function unavailable(detail: string): ApiProblem {
  return new ApiProblem('logs_unavailable', detail, { headers: { 'retry-after': '5' } })
}

interface LogFollow {
  readonly taskId: string
  readonly stream: LogStream
  /** Bytes since the attempt began. */
  readonly offset: number
  readonly maxBytes: number
}

/** First pause between two requests. The pause grows while no output arrives. */
const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 1_000
/** The output of a task that has ended is asked for this long before it counts as gone with its server. */
const GIVE_UP_MS = 30_000
/** The refusal that passes. */
const BUSY = 'too_many_reads'

/** Ends when all of the attempt's output is sent, the task has another attempt, or the reader is gone. */
async function* followLog(
  views: Views,
  logs: TaskLogs,
  follow: LogFollow,
  gone: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let { offset } = follow
  let source: LogSource | null = null
  let waitMs = FIRST_WAIT_MS
  let silentMs = 0
  let unavailableMs = 0
  while (!gone.aborted) {
    const now: LogSource | null = await logSourceOf(views, follow.taskId).catch(() => source)
    if (source !== null && now !== null && now.attempt !== source.attempt)
      return yield endOf(source, 'superseded')
    source = now ?? source
    const answer =
      source === null
        ? null
        : await logs.read(
            source.nodeId,
            follow.taskId,
            source.attempt,
            follow.stream,
            offset,
            follow.maxBytes,
          )
    if (source !== null && answer !== null && !('refused' in answer)) {
      const piece = presentLog(answer, source.nodeId)
      if (piece.next_offset > offset || piece.data !== '') {
        yield sseEvent('output', piece, piece.next_offset)
        offset = piece.next_offset
        waitMs = FIRST_WAIT_MS
        silentMs = 0
        unavailableMs = 0
        continue
      }
      if (piece.is_ended) return yield endOf(source, 'ended')
      unavailableMs = 0
    } else if (source !== null && views.openTask(follow.taskId) === undefined) {
      const isUnknown = answer !== null && 'refused' in answer && answer.refused !== BUSY
      unavailableMs += waitMs
      if (isUnknown || unavailableMs >= GIVE_UP_MS) return yield endOf(source, 'unavailable')
    }
    await sleep(waitMs, undefined, { signal: gone }).catch(() => undefined)
    silentMs += waitMs
    waitMs = Math.min(MAX_WAIT_MS, waitMs * 2)
    if (silentMs >= HEARTBEAT_MS) {
      yield SSE_HEARTBEAT
      silentMs = 0
    }
  }
}

function presentLog(chunk: LogChunk, nodeId: string): LogBody {
  return {
    task_id: chunk.task_id,
    attempt: chunk.attempt,
    node_id: nodeId,
    stream: chunk.stream,
    offset: chunk.offset,
    next_offset: chunk.offset + Buffer.byteLength(chunk.data, 'base64'),
    data: chunk.data,
    is_ended: chunk.is_ended,
  }
}

function endOf({ attempt }: LogSource, why: LogEndBody['why']): string {
  return sseEvent('end', { attempt, why } satisfies LogEndBody)
}
