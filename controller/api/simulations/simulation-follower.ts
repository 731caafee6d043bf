/** How a simulation goes on, as server-sent events: its record at once, then whenever it has changed. */
import { isOver, type Simulation } from '../../ports/simulation.ts'
import { presentSimulation } from './present.ts'
import { HEARTBEAT_MS, SSE_HEARTBEAT, sseEvent } from '../http/server-sent-events.ts'

/** Ends when the simulation is over or gone. */
export async function* followSimulation(
  simulation: Simulation,
  id: string,
): AsyncGenerator<string, void, undefined> {
  let seen = -1
  for (;;) {
    const record = simulation.get(id)
    if (record === undefined) return yield sseEvent('end', { id, state: null })
    const isNews = record.revision > seen
    if (isNews) yield sseEvent('simulation', presentSimulation(record), record.revision)
    else yield SSE_HEARTBEAT
    seen = record.revision
    if (isOver(record.state)) return yield sseEvent('end', { id, state: record.state })
    await simulation.changed(id, seen, HEARTBEAT_MS)
  }
}
