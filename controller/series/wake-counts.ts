/** Wakes that have ended on each node since its last reading, by their duration. */
import { totalOf, WakeTimes } from '../metrics/wake-times.ts'
import type { Event } from '../model/event.ts'
import type { EventSource } from '../engine/durable-events.ts'
import type { Views } from '../query/views.ts'
import { FIRST_WAKE_COLUMN, WAKE_BOUNDS_S } from './columns.ts'

export class WakeCounts {
  readonly #views: Pick<Views, 'openTask' | 'node'>
  readonly #wakes: WakeTimes
  /** By node. */
  readonly #counts = new Map<string, number[]>()

  constructor(views: Pick<Views, 'openTask' | 'node'>) {
    this.#views = views
    this.#wakes = new WakeTimes((id) => views.openTask(id)?.placement ?? null)
  }

  /** @returns a function that ends it */
  follow(source: EventSource): () => void {
    return source.subscribe((events) => {
      for (const event of events) this.#take(event)
    })
  }

  /** Adds the counts of the node to its row, and resets them. */
  read(nodeId: string, row: Float64Array): void {
    const counts = this.#counts.get(nodeId)
    if (counts === undefined) return
    this.#counts.delete(nodeId)
    counts.forEach((count, place) => (row[FIRST_WAKE_COLUMN + place] = count))
  }

  #take(event: Event): void {
    const wake = this.#wakes.take(event)
    const { nodeId } = event
    if (wake === null || nodeId === null || this.#views.node(nodeId) === undefined) return
    const place = WAKE_BOUNDS_S.findIndex((bound) => totalOf(wake) / 1000 <= bound)
    const counts = this.#counts.get(nodeId) ?? Array<number>(WAKE_BOUNDS_S.length + 1).fill(0)
    this.#counts.set(nodeId, counts)
    const at = place < 0 ? WAKE_BOUNDS_S.length : place
    counts[at] = (counts[at] ?? 0) + 1
  }
}
