import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { followLog, presentLog } from './log-follower.ts'
import { logSourceOf } from './log-source.ts'
import { operation } from '../http/operation.ts'
import { LOG_DEFAULTS, LogQuerySchema, LogSchema } from './log-schema.ts'
import { TaskPathSchema } from './schema.ts'
import { EventStreams, lastEventId, SSE_HEARTBEAT } from '../http/server-sent-events.ts'

const readLog = operation(
  {
    operationId: 'readLog',
    role: 'submitter',
    ownersOnly: true,
    summary: 'Output of the latest attempt of a task; a stream with follow=true',
    description: 'Read from the GPU server of the attempt, which keeps output for a limited time and size.',
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
      return followers.send(reply, async function* () {
        // Confirms the connection to the reader at once.
        yield SSE_HEARTBEAT
        yield* followLog(views, logs, { taskId, stream, offset: from, maxBytes })
      }) as never
    }
    if (source === null)
      throw new ApiProblem('conflict', 'The task has not been placed yet and has no output.')
    const answer = await logs.read(source.nodeId, taskId, source.attempt, stream, offset, maxBytes)
    if (answer === null) throw unavailable('The GPU server with the output does not answer. Try again later.')
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
    const detail = 'Too many reads of output are in progress on the GPU server. Try again in 1 s.'
    return new ApiProblem('too_many_reads', detail, { headers: { 'retry-after': '1' } })
  }
  return new ApiProblem('not_found', `The GPU server keeps no output of this attempt (${reason}).`)
}

function unavailable(detail: string): ApiProblem {
  return new ApiProblem('logs_unavailable', detail, { headers: { 'retry-after': '5' } })
}
