/**
 * A queue between socket and handlers: messages are handled in order, in time slices, and the queue is
 * bounded.
 */
import type { NatsLimits } from './limits.ts'

export interface Arrival {
  readonly bytes: number
  readonly handle: () => void
}

export class Arrivals {
  readonly #limits: NatsLimits
  #waiting: Arrival[] = []
  #first = 0
  #waitingBytes = 0
  /** When the current time slice ends; 0 between slices. */
  #turnEndsAt = 0

  constructor(limits: NatsLimits) {
    this.#limits = limits
  }

  /** Returns false, and drops the message, if too much is queued. */
  take(arrival: Arrival): boolean {
    if (this.#turnEndsAt === 0) this.#beginTurn()
    if (this.count === 0 && performance.now() < this.#turnEndsAt) {
      arrival.handle()
      return true
    }
    if (this.count >= this.#limits.maxWaitingMessages) return false
    if (this.#waitingBytes + arrival.bytes > this.#limits.maxWaitingBytes) return false
    this.#waiting.push(arrival)
    this.#waitingBytes += arrival.bytes
    return true
  }

  get count(): number {
    return this.#waiting.length - this.#first
  }

  /** Handles all queued messages, however long it takes. */
  finish(): void {
    while (this.count > 0) this.#handleNext()
  }

  clear(): void {
    this.#waiting = []
    this.#first = 0
    this.#waitingBytes = 0
  }

  #beginTurn(): void {
    this.#turnEndsAt = performance.now() + this.#limits.turnMs
    setImmediate(() => {
      this.#turnEndsAt = 0
      if (this.count === 0) return
      this.#beginTurn()
      while (this.count > 0 && performance.now() < this.#turnEndsAt) this.#handleNext()
    })
  }

  #handleNext(): void {
    const arrival = this.#waiting[this.#first] as Arrival
    this.#first += 1
    this.#waitingBytes -= arrival.bytes
    if (this.#first === this.#waiting.length) this.clear()
    else if (this.#first >= COMPACT_AFTER) {
      this.#waiting = this.#waiting.slice(this.#first)
      this.#first = 0
    }
    arrival.handle()
  }
}

/** Number of handled messages at the front of the list before it is compacted. */
const COMPACT_AFTER = 4096
