/** Publishes events to subscribers as they become durable. */
import type { Event } from '../model/event.ts'

/**
 * Called with every event once it is durable, in order. The list is emptied after the call; the events remain
 * valid.
 */
export type EventListener = (events: readonly Event[]) => void

export interface EventSource {
  /** Subscribes to all events that become durable from now on. @returns a function that unsubscribes. */
  subscribe(listener: EventListener): () => void
}

export class DurableEvents implements EventSource {
  #listeners: readonly EventListener[]

  /** @param first is called with all events, before any other subscriber */
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
