import { Type, type Static } from 'typebox'
import { EVENT_KINDS, type EventData } from '../../model/event.ts'
import {
  closed,
  count,
  countOrNull,
  instant,
  integer,
  list,
  moment,
  oneOf,
  pathId,
  refTo,
  textOrNull,
  wordsOf,
} from '../http/fields-schema.ts'
import { MEDIA_TYPE } from '../http/service-schema.ts'

export const EventSchema = Type.Object(
  {
    seq: count('1, 2, 3, … without gaps'),
    at: instant('When the event occurred'),
    kind: oneOf(EVENT_KINDS),
    task_id: textOrNull('Task that the event concerns'),
    node_id: textOrNull('Node that the event concerns'),
    caused_by: countOrNull('seq of the event that caused it; null for external causes'),
    decision: countOrNull(
      'Number of the recorded decision, for GET /decisions/{number}; null: not a decision',
    ),
    by: textOrNull('Name of the caller; null: no caller, or callers have no names'),
    data: Type.Unsafe<EventData>({
      type: 'object',
      additionalProperties: true,
      description: 'Details; the fields depend on the kind',
    }),
  },
  { $id: 'Event', description: 'An event with its cause.' },
)
export type EventBody = Static<typeof EventSchema>
const EventRef = refTo<EventBody>('Event')

export const EventPageSchema = Type.Object({
  items: list(EventRef),
  next_after: count('Oldest first: send it as `after` to continue; unchanged if there are no new events'),
  next_before: countOrNull(
    'Newest first: send it as `before` to continue; null: no earlier events are stored, or oldest first',
  ),
  first_seq: count('seq of the oldest stored event; last_seq + 1 if no event is stored'),
  last_seq: count('seq of the newest event, for readers that start near the end; 0: no events'),
  names: Type.Unsafe<Readonly<Record<string, string>>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description:
      'Names of the tasks and nodes in the items, by ID, including those in data (because, victims); ' +
      'tasks that are no longer stored are omitted',
  }),
})
export type EventPage = Static<typeof EventPageSchema>

const MAX_SEQ = Number.MAX_SAFE_INTEGER
const kind = wordsOf(EVENT_KINDS, 1000, 'Only these kinds, separated by commas')
const ofTask = pathId('Only events of this task, by ID or name; 400 if the name is ambiguous')
const ofNode = pathId('Only events of this node, by ID or name; 400 if the name is ambiguous')

const paging = {
  after: Type.Optional(
    integer(0, MAX_SEQ, { default: 0, description: 'Only events whose seq is greater than this value' }),
  ),
  before: Type.Optional(
    integer(0, MAX_SEQ, { description: 'Only events whose seq is less than this value' }),
  ),
  order: Type.Optional(oneOf(['oldest', 'newest'], { default: 'oldest', description: 'Sort order' })),
  since: Type.Optional(moment('Only events at or after this time')),
  until: Type.Optional(moment('Only events before this time')),
  kind: Type.Optional(kind),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
}

export const EventQuerySchema = closed({
  ...paging,
  task: Type.Optional(ofTask),
  node: Type.Optional(ofNode),
})
export type EventQueryBody = Static<typeof EventQuerySchema>

export const TaskEventQuerySchema = closed(paging)

export const EventStreamQuerySchema = closed({
  after: Type.Optional(
    integer(0, MAX_SEQ, {
      description:
        'Start after this event; 0: start with the oldest stored event; default: only new events. A ' +
        'Last-Event-ID header takes precedence',
    }),
  ),
  kind: Type.Optional(kind),
  task: Type.Optional(ofTask),
  node: Type.Optional(ofNode),
  summary: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Also send a `summary` event once per second, with the body of /summary and without ' + 'an `id`',
    }),
  ),
})

/** The body as text, for the OpenAPI document. */
export const EventStreamSchema = Type.String({
  [MEDIA_TYPE]: 'text/event-stream',
  description:
    'Server-sent events of the type `event`: `id` is the seq, and `data` is an Event as JSON. A message ' +
    'that has only an `id` advances the position of the client. A comment is sent every 15 s. To ' +
    'resume after a disconnect, send Last-Event-ID',
})
