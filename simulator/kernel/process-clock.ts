import type { CancelTimer, Clock, TimerRank } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'

/** The clock of a process that may die: none of its timers runs after its death. */
export class ProcessClock implements Clock {
  isDead = false
  readonly #inner: Clock

  constructor(inner: Clock) {
    this.#inner = inner
  }

  now(): Instant {
    return this.#inner.now()
  }

  at(instant: Instant, fn: () => void, rank?: TimerRank): CancelTimer {
    return this.#inner.at(instant, () => this.isDead || fn(), rank)
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.#inner.soon(() => this.isDead || fn(), rank)
  }
}
