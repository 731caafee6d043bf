/** The newest events as they go to readers, each encoded once however many there are. */
import type { Event } from '../../model/event.ts'
import { presentEvent } from './present-event.ts'
import { sseEvent } from '../http/server-sent-events.ts'

/**
 * So many are kept, so that a reader who has just caught up with the store finds those that came meanwhile.
 */
const MAX_RECENT_EVENTS = 2_048

export class RecentEvents {
  readonly #events: Event[] = []
  readonly #frames = new WeakMap<Event, Buffer>()
  #floor = 0

  /** Every event with a higher seq that was ever pushed is still here. */
  get floor(): number {
    return this.#floor
  }

  /** seq of the newest; 0 before the first. */
  get lastSeq(): number {
    return this.#events.at(-1)?.seq ?? 0
  }

  push(events: readonly Event[]): void {
    this.#events.push(...events)
    const excess = this.#events.length - MAX_RECENT_EVENTS
    if (excess > 0) this.#floor = this.#events.splice(0, excess).at(-1)?.seq ?? this.#floor
  }

  /** Those with a higher seq, oldest first. */
  after(seq: number): readonly Event[] {
    const first = this.#events.findLastIndex((event) => event.seq <= seq) + 1
    return this.#events.slice(first)
  }

  /** The same bytes each time. */
  frameOf(event: Event): Buffer {
    const known = this.#frames.get(event)
    if (known !== undefined) return known
    const frame = eventFrame(event)
    this.#frames.set(event, frame)
    return frame
  }
}

export function eventFrame(event: Event): Buffer {
  return Buffer.from(sseEvent('event', presentEvent(event), event.seq))
}
