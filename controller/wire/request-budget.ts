/**
 * Request budget of all clients of the bus together: a bucket that refills steadily and holds two seconds of
 * requests.
 */
import type { Instant } from '../../protocol/units.ts'

const BURST_SECONDS = 2

export class RequestBudget {
  readonly #perSecond: number
  #left: number
  #at: Instant | null = null

  /** @param perSecond 0: no limit */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#left = perSecond * BURST_SECONDS
  }

  /** Takes one request; returns false if none is left. */
  take(now: Instant): boolean {
    if (this.#perSecond === 0) return true
    const refilled = this.#at === null ? 0 : ((now - this.#at) / 1000) * this.#perSecond
    this.#left = Math.min(this.#left + refilled, this.#perSecond * BURST_SECONDS)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
