/** Whoever wants to hear of events as they become durable. */
import type { Event } from '../domain/event.ts'

/**
 * Called with every event once it is durable, in order. The list is lent: it is emptied afterwards; the
 * events stay.
 */
export type EventListener = (events: readonly Event[]) => void

export interface EventSource {
  /** Hears all events that become durable from now on. @returns hears no more. */
  subscribe(listener: EventListener): () => void
}

export class DurableEvents implements EventSource {
  #listeners: readonly EventListener[]

  /** @param first hears all of them, before everybody else. */
  constructor(first?: EventListener) {
    this.#listeners = first === undefined ? [] : [first]
  }

  subscribe(listener: EventListener): () => void {
    this.#listeners = [...this.#listeners, listener]
    return () => {
      this.#listeners = this.#listeners.filter((each) => each !== listener)
    }
  }

  publish(events: readonly Event[]): void {
    for (const listener of this.#listeners) listener(events)
  }
}
