import { DECISION_EVENTS } from '../../model/decision.ts'
import type { Event } from '../../model/event.ts'
import type { EventBody } from './event-schema.ts'
import { presentInstant } from '../http/instant.ts'

export function presentEvent(event: Event): EventBody {
  return {
    seq: event.seq,
    at: presentInstant(event.at),
    kind: event.kind,
    task_id: event.taskId,
    node_id: event.nodeId,
    caused_by: event.causedBy,
    decision: DECISION_EVENTS.includes(event.kind) ? event.seq : null,
    by: event.by,
    data: event.data,
  }
}
