/**
 * Messages between socket and handler: handled in order, for so long at a time, and no more waiting than may.
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
  /** When the time of this turn is up; 0 between turns. */
  #turnEndsAt = 0

  constructor(limits: NatsLimits) {
    this.#limits = limits
  }

  /** False: too much waits already, and this one is forgotten. */
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

  /** Handles all that waits, however long it takes. */
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

/** Handled messages at the front of the list before it is cut. */
const COMPACT_AFTER = 4096
