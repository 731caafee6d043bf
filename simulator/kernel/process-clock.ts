import type { CancelTimer, Clock, TimerRank } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Pause } from './pause.ts'

/**
 * The clock of a process that may die: none of its timers runs after its death. While it is paused, timers
 * wait.
 */
export class ProcessClock implements Clock {
  isDead = false
  readonly #inner: Clock
  readonly #pause: Pause | null

  constructor(inner: Clock, pause: Pause | null = null) {
    this.#inner = inner
    this.#pause = pause
  }

  /** As its death. */
  stop(): void {
    this.isDead = true
  }

  now(): Instant {
    return this.#inner.now()
  }

  at(instant: Instant, fn: () => void, rank?: TimerRank): CancelTimer {
    if (this.#pause === null) return this.#inner.at(instant, () => this.isDead || fn(), rank)
    let isCancelled = false
    const cancel = this.#inner.at(instant, () => this.#run(() => isCancelled || fn()), rank)
    return () => {
      isCancelled = true
      cancel()
    }
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.#inner.soon(() => this.#run(fn), rank)
  }

  #run(fn: () => void): void {
    const act = (): void => void (this.isDead || fn())
    if (this.#pause === null) act()
    else this.#pause.run(act)
  }
}
