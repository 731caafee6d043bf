import type { Event, EventValue } from '../../model/event.ts'
import type { Views } from '../../query/views.ts'
import type { EventQuery } from '../../ports/store.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../http/errors.ts'
import { eventQueryOf, kindsOf, subjectsOf } from './event-query.ts'
import { operation } from '../http/operation.ts'
import { presentEvent } from './present-event.ts'
import {
  EventPageSchema,
  EventQuerySchema,
  EventStreamQuerySchema,
  EventStreamSchema,
  TaskEventQuerySchema,
  type EventPage,
} from './event-schema.ts'
import { TaskPathSchema } from '../tasks/schema.ts'
import { lastEventId, sendStream } from '../http/server-sent-events.ts'

const listEvents = operation(
  {
    operationId: 'listEvents',
    role: 'viewer',
    summary: 'Events, oldest first or newest first',
    description:
      '`after` lists later events in ascending order, `before` earlier events in descending order; send ' +
      'at most one of them. `first_seq` is the sequence number of the oldest event that is stored.',
    tags: ['events'],
    querystring: EventQuerySchema,
    response: { 200: EventPageSchema },
  },
  ['store_failed'],
)

const listTaskEvents = operation(
  {
    operationId: 'listTaskEvents',
    role: 'viewer',
    summary: 'Events of an open or completed task',
    description: 'In order of sequence number. For later events, send `next_after` as `after`.',
    tags: ['events'],
    params: TaskPathSchema,
    querystring: TaskEventQuerySchema,
    response: { 200: EventPageSchema },
  },
  ['not_found', 'store_failed'],
)

const streamEvents = operation(
  {
    operationId: 'streamEvents',
    role: 'viewer',
    answerHeaders: ['X-Accel-Buffering'],
    summary: 'Stream events',
    description:
      'Server-sent events, without gaps or duplicates across connections. After a disconnection, send ' +
      'the ID of the last received event as Last-Event-ID. Returns 410 if later events are no longer ' +
      'stored, or if the log ends before that event because an older state was restored. In that case, ' +
      'read the state again and start a new stream at the event that `detail` names.',
    tags: ['events'],
    querystring: EventStreamQuerySchema,
    response: { 200: EventStreamSchema },
  },
  ['events_gone', 'too_many_streams', 'store_failed'],
)

/** GET /events, /events/stream and /tasks/{task_id}/events. */
export function eventRoutes(app: ApiApp, { views, feed, streams }: ApiContext): void {
  app.get('/events', { schema: listEvents }, async ({ query }) =>
    pageOf(views, await eventQueryOf(query, views)),
  )

  app.get('/tasks/:task_id/events', { schema: listTaskEvents }, async ({ params, query }) => {
    const page = await pageOf(views, { ...(await eventQueryOf(query, views)), taskId: params.task_id })
    if (page.items.length === 0 && !(await isKnown(views, params.task_id)))
      throw notFound('task', params.task_id)
    return page
  })

  // No HEAD route: Fastify would read this endless stream to its end.
  app.get('/events/stream', { schema: streamEvents, exposeHeadRoute: false }, async (request, reply) => {
    const { query, headers } = request
    const { after = null, kind, summary: wantsSummary = false } = query
    const filter = { kinds: kindsOf(kind), ...(await subjectsOf(query, views)) }
    const from = lastEventId(headers['last-event-id']) ?? after
    streams.take(request, reply)
    const body = await feed.open(from, { filter, wantsSummary })
    return sendStream(reply, body) as never
  })
  app.addHook('preClose', () => feed.close())
}

async function pageOf(views: Views, query: EventQuery): Promise<EventPage> {
  const [events, range] = await Promise.all([views.stored.events(query), views.stored.eventRange()])
  const isNewestFirst = query.isNewestFirst === true
  const last = events.at(-1)?.seq
  return {
    items: events.map(presentEvent),
    next_after: isNewestFirst ? query.afterSeq : (last ?? query.afterSeq),
    next_before: isNewestFirst && events.length === query.limit ? (last ?? null) : null,
    first_seq: range.firstSeq,
    last_seq: views.lastEventSeq(),
    names: await namesOf(views, events),
  }
}

/**
 * Returns the names of tasks and nodes in the events, including victims and preemptors
 * (`because` is `for ID`). Open tasks are in memory; each final task is looked up once.
 */
async function namesOf(views: Views, events: readonly Event[]): Promise<Readonly<Record<string, string>>> {
  const nodes = [...new Set(events.map(({ nodeId }) => nodeId))]
    .filter((id) => id !== null)
    .map((id) => [id, views.node(id)?.name] as const)
  const nameOf = async (id: string) => views.openTask(id)?.spec.name ?? (await views.stored.task(id))?.name
  const mentioned = events.flatMap(({ taskId, data: { because, victims } }) => [
    taskId,
    typeof because === 'string' ? because.replace(/^for /, '') : null,
    ...(Array.isArray(victims) ? victims.map(idOf) : []),
  ])
  const tasks = await Promise.all(
    [...new Set(mentioned)]
      .filter((id) => typeof id === 'string')
      .map(async (id) => [id, await nameOf(id)] as const),
  )
  return Object.fromEntries(
    [...nodes, ...tasks].flatMap(([id, name]) => (name === undefined ? [] : [[id, name]])),
  )
}

async function isKnown(views: Views, taskId: string): Promise<boolean> {
  return views.openTask(taskId) !== undefined || (await views.stored.task(taskId)) !== null
}

/** Returns the id of a victim in the data of a `swap_decided` event. */
function idOf(victim: EventValue): EventValue | undefined {
  return typeof victim === 'object' && victim !== null && 'id' in victim ? victim.id : undefined
}
