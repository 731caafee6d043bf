/**
 * A virtual clock in step with real time: the same fleet, live. Timers run when real time reaches them; after
 * a pause, or when started in the past, the clock catches up as fast as it can.
 */
import type { CancelTimer, TimerRank } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { SimClock, SimTimer } from './virtual-clock.ts'
import { VirtualClock } from './virtual-clock.ts'

/** Real time, passed in so that tests can replace it. */
export interface RealTime {
  now(): Instant
  /** Runs `fn` after this number of real milliseconds; returns a function that cancels it. */
  after(ms: number, fn: () => void): () => void
  /** Runs `fn` after the pending work of the event loop. */
  soon(fn: () => void): void
}

/** Steps after which other work (requests, commits) gets its turn. */
const STEPS_PER_TURN = 256
/** Longest delay of a timer of the platform. */
const LONGEST_WAIT_MS = 60_000

export class PacedClock implements SimClock {
  readonly #inner: VirtualClock
  readonly #real: RealTime
  readonly #mayStep: () => boolean
  #isPumping = false
  #isPlanned = false
  #isStopped = false
  #isRunning = false
  #cancelWait: () => void = () => {}

  /**
   * @param start may be in the past: the clock then catches up
   * @param mayStep returns false to hold time back, for example during a commit while the clock catches up
   */
  constructor(start: Instant, real: RealTime, mayStep: (behindMs: number) => boolean = () => true) {
    this.#inner = new VirtualClock(start)
    this.#real = real
    this.#mayStep = () => mayStep(real.now() - this.#inner.now())
  }

  /** Time does not advance until everything at the start is set up. */
  begin(): void {
    this.#isRunning = true
    this.#plan()
  }

  now(): Instant {
    if (!this.#isPumping && this.#isRunning) {
      const due = this.#inner.nextAt()
      const real = this.#real.now()
      this.#inner.advanceTo(due === null ? real : Math.min(due, real))
    }
    return this.#inner.now()
  }

  at(instant: Instant, fn: () => void, rank?: TimerRank): CancelTimer {
    const cancel = this.#inner.at(instant, fn, rank)
    this.#plan()
    return cancel
  }

  timer<T>(fn: (of: T) => void, of: T, rank: TimerRank): SimTimer {
    const inner = this.#inner.timer(fn, of, rank)
    return {
      set: (instant) => {
        inner.set(instant)
        this.#plan()
      },
      clear: () => inner.clear(),
    }
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.#inner.soon(fn, rank)
    this.#plan()
  }

  /** How far it is behind real time. */
  behindMs(): number {
    const due = this.#inner.nextAt()
    return due === null ? 0 : Math.max(0, this.#real.now() - due)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelWait()
  }

  #plan(): void {
    if (this.#isPumping || this.#isPlanned || this.#isStopped || !this.#isRunning) return
    this.#isPlanned = true
    this.#real.soon(() => this.#pump())
  }

  #pump(): void {
    this.#isPlanned = false
    if (this.#isStopped) return
    this.#cancelWait()
    this.#isPumping = true
    try {
      for (let i = 0; i < STEPS_PER_TURN && this.#mayStep(); i++)
        if (!this.#inner.step(this.#real.now())) break
    } finally {
      this.#isPumping = false
    }
    this.#planNext()
  }

  #planNext(): void {
    const due = this.#inner.nextAt()
    if (due === null) return
    const waitMs = due - this.#real.now()
    if (waitMs <= 0) this.#plan()
    else this.#cancelWait = this.#real.after(Math.min(waitMs, LONGEST_WAIT_MS), () => this.#plan())
  }
}
