/**
 * A virtual clock that keeps step with real time: the same fleet, live. What is due is run as soon as real
 * time has come to it; after a pause, or when started in the past, it catches up as fast as it can.
 */
import type { CancelTimer, TimerRank } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { SimClock, SimTimer } from './virtual-clock.ts'
import { VirtualClock } from './virtual-clock.ts'

/** The ambient world, handed in so that tests can be without it. */
export interface RealTime {
  now(): Instant
  /** Runs `fn` after so many real milliseconds; answers how to take it back. */
  after(ms: number, fn: () => void): () => void
  /** Runs `fn` as soon as the event loop has done its other work. */
  soon(fn: () => void): void
}

/** Other work (requests, commits) gets its turn after so many steps. */
const STEPS_PER_TURN = 256
/** Timers of the platform take no longer waits than this. */
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
   * @param start may lie in the past: the clock then catches up
   * @param mayStep false holds time back, for example while a commit is under way and there is time to catch
   *   up
   */
  constructor(start: Instant, real: RealTime, mayStep: (behindMs: number) => boolean = () => true) {
    this.#inner = new VirtualClock(start)
    this.#real = real
    this.#mayStep = () => mayStep(real.now() - this.#inner.now())
  }

  /** Time stands still at the start until everything that begins there is set up. */
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
