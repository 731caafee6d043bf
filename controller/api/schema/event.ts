import { Type, type Static } from 'typebox'
import { EVENT_KINDS, type EventData } from '../../domain/event.ts'
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
} from './fields.ts'
import { MEDIA_TYPE } from './service.ts'

export const EventSchema = Type.Object(
  {
    seq: count('1, 2, 3, … without a gap'),
    at: instant('When it happened'),
    kind: oneOf(EVENT_KINDS),
    task_id: textOrNull('The task it concerns'),
    node_id: textOrNull('The node it concerns'),
    caused_by: countOrNull('seq of the event that led to it; null for what came from outside'),
    decision: countOrNull(
      'Number of the decision that it tells, for GET /decisions/{number}; null when it tells none',
    ),
    by: textOrNull('Who asked for it; null for what nobody asked for, and where nobody is known by name'),
    data: Type.Unsafe<EventData>({
      type: 'object',
      additionalProperties: true,
      description: 'Facts, by kind',
    }),
  },
  { $id: 'Event', description: 'Something that happened, with its place in the chain of events.' },
)
export type EventBody = Static<typeof EventSchema>
export const EventRef = refTo<EventBody>('Event')

export const EventPageSchema = Type.Object({
  items: list(EventRef),
  next_after: count('Oldest first: send it as after to go on; the same as before when there is nothing new'),
  next_before: countOrNull(
    'Newest first: send it as before to go on; null when nothing earlier is kept, and when oldest first',
  ),
  first_seq: count('seq of the oldest event that is kept; one more than last_seq when none is'),
  last_seq: count(
    'seq of the newest event of all, so that a reader can begin near the end; 0 when there is none',
  ),
  names: Type.Unsafe<Readonly<Record<string, string>>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description:
      'By id: tasks and nodes that the items name, in data too (because, victims); one that is no longer kept is not among them',
  }),
})
export type EventPage = Static<typeof EventPageSchema>

const MAX_SEQ = Number.MAX_SAFE_INTEGER
const kind = wordsOf(EVENT_KINDS, 1000, 'Only of this kind, or of these, separated by commas')
const ofTask = pathId('Only of this task, by id or name; 400 when several have that name')
const ofNode = pathId('Only of this node, by id or name; 400 when several have that name')

const paging = {
  after: Type.Optional(integer(0, MAX_SEQ, { default: 0, description: 'Only events with a higher seq' })),
  before: Type.Optional(integer(0, MAX_SEQ, { description: 'Only events with a lower seq' })),
  order: Type.Optional(oneOf(['oldest', 'newest'], { default: 'oldest', description: 'Which come first' })),
  since: Type.Optional(moment('From then on')),
  until: Type.Optional(moment('Before then')),
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
        'Begin behind this event, 0: with the oldest that is kept; left out: with what happens from now on. A Last-Event-ID header wins',
    }),
  ),
  kind: Type.Optional(kind),
  task: Type.Optional(ofTask),
  node: Type.Optional(ofNode),
  summary: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Also `summary` events, once a second: what /summary answers. They have no id',
    }),
  ),
})

/** What the body is, as text; the document shows it. */
export const EventStreamSchema = Type.String({
  [MEDIA_TYPE]: 'text/event-stream',
  description:
    '`event` events: id is their seq, data an Event as JSON. A comment every 15 s. An id alone says where the reader stands. When the connection ends, come back with Last-Event-ID',
})
