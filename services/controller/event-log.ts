/**
 * Writes events to the log: decisions at level debug, what an operator should see at info or warn, each with
 * the ids of the API.
 */
import type { Logger } from 'pino'
import type { Event, EventKind } from '../../controller/model/event.ts'

const NOTABLE: ReadonlySet<EventKind> = new Set([
  'node_registered',
  'node_status',
  'node_forgotten',
  'config_changed',
  'leader_changed',
  'reserve_breached',
])
const ALARMING: ReadonlySet<EventKind> = new Set([
  'requeue_freeze',
  'broker_absence',
  'duplicate_node',
  'store_behind',
  'recovery',
  'attempt_quarantined',
])

/** @param fleet for a simulated one, nodes that come and go are not logged */
export function createEventLog(log: Logger, fleet: 'live' | 'simulated'): (events: readonly Event[]) => void {
  const isDebugging = log.isLevelEnabled('debug')
  return (events) => {
    for (const event of events) {
      if (ALARMING.has(event.kind)) log.warn(factsOf(event), event.kind)
      else if (fleet === 'live' && NOTABLE.has(event.kind)) log.info(factsOf(event), event.kind)
      else if (isDebugging) log.debug(factsOf(event), event.kind)
    }
  }
}

function factsOf({ seq, taskId, nodeId, causedBy, data }: Event): Readonly<Record<string, unknown>> {
  const { decision } = data
  return {
    event_seq: seq,
    task_id: taskId ?? undefined,
    node_id: nodeId ?? undefined,
    decision_id: decision,
    caused_by: causedBy ?? undefined,
    data,
  }
}
