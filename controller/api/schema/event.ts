import { Type, type Static } from 'typebox'
import { EVENT_KINDS, type EventData } from '../../domain/event.ts'
import { closed, count, countOrNull, instant, integer, list, oneOf, pathId, refTo, textOrNull } from './fields.ts'

export const EventSchema = Type.Object(
  {
    seq: count('1, 2, 3, … without a gap'),
    at: instant('When it happened'),
    kind: oneOf(EVENT_KINDS),
    task_id: textOrNull('The task it concerns'),
    node_id: textOrNull('The node it concerns'),
    caused_by: countOrNull('seq of the event that led to it; null for what came from outside'),
    decision: countOrNull('Number of the decision that it tells, for GET /decisions/{number}; null when it tells none'),
    by: textOrNull('Who asked for it; null for what nobody asked for, and where nobody is known by name'),
    data: Type.Unsafe<EventData>({ type: 'object', additionalProperties: true, description: 'Facts, by kind' }),
  },
  { $id: 'Event' },
)
export type EventBody = Static<typeof EventSchema>
export const EventRef = refTo<EventBody>('Event')

export const EventPageSchema = Type.Object({
  items: list(EventRef),
  next_after: count('Send it as after to go on; the same as before when there is nothing new'),
  last_seq: count('seq of the newest event of all, so that a reader can begin near the end; 0 when there is none'),
})
export type EventPage = Static<typeof EventPageSchema>

export const EventQuerySchema = closed({
  after: Type.Optional(integer(0, Number.MAX_SAFE_INTEGER, { default: 0, description: 'Only events with a higher seq, oldest first' })),
  task: Type.Optional(pathId('Only of this task')),
  node: Type.Optional(pathId('Only of this node')),
  limit: Type.Optional(integer(1, 200, { default: 50 })),
})
