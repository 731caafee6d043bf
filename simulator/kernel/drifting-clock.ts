/**
 * A machine's own clock, which may run fast or slow compared with true time. An offset that it has gained or
 * lost remains.
 */
import type { CancelTimer, Clock, TimerRank } from '../../controller/ports/clock.ts'
import { RANK_DECISION } from '../../controller/ports/clock.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

const MILLION = 1_000_000

interface Planned {
  readonly local: Instant
  readonly fn: () => void
  readonly rank: TimerRank
  cancel: CancelTimer
}

export class DriftingClock implements Clock {
  readonly #true: Clock
  /** True time and the time of this clock at the last change of the rate. */
  #trueBase: Instant
  #localBase: Instant
  #ppm = 0
  readonly #planned = new Set<Planned>()

  constructor(trueClock: Clock) {
    this.#true = trueClock
    this.#trueBase = trueClock.now()
    this.#localBase = this.#trueBase
  }

  now(): Instant {
    return this.#localAt(this.#true.now())
  }

  /** How far it is ahead of true time. */
  get aheadMs(): DurationMs {
    return this.now() - this.#true.now()
  }

  at(instant: Instant, fn: () => void, rank: TimerRank = RANK_DECISION): CancelTimer {
    const planned: Planned = { local: instant, fn, rank, cancel: () => {} }
    this.#planned.add(planned)
    this.#plan(planned)
    return () => {
      this.#planned.delete(planned)
      planned.cancel()
    }
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.#true.soon(fn, rank)
  }

  /** Changes the rate, in parts per million; planned timers keep their time on this clock. */
  setDrift(ppm: number): void {
    const now = this.#true.now()
    this.#localBase = this.#localAt(now)
    this.#trueBase = now
    this.#ppm = ppm
    for (const planned of this.#planned) {
      planned.cancel()
      this.#plan(planned)
    }
  }

  #plan(planned: Planned): void {
    const run = (): void => {
      this.#planned.delete(planned)
      planned.fn()
    }
    planned.cancel = this.#true.at(this.#trueAt(planned.local), run, planned.rank)
  }

  #localAt(at: Instant): Instant {
    const passed = at - this.#trueBase
    return this.#localBase + passed + Math.floor((passed * this.#ppm) / MILLION)
  }

  /** The first true instant at which this clock shows at least that time. */
  #trueAt(local: Instant): Instant {
    const passed = local - this.#localBase
    let at = this.#trueBase + Math.floor((passed * MILLION) / (MILLION + this.#ppm))
    while (this.#localAt(at) < local) at += 1
    return at
  }
}
