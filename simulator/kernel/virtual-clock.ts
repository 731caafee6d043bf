/**
 * Virtual time: a heap of timers, and one first-in-first-out list per rank for what is due in the current
 * instant. Nothing sleeps; `step` runs the next timer and advances time to it.
 */
import type { Instant } from '../../protocol/units.ts'
import type { CancelTimer, Clock, TimerRank } from '../../controller/ports/clock.ts'
import { RANK_DECISION } from '../../controller/ports/clock.ts'
import { TimerHeap, type Ticketed } from './timer-heap.ts'

/** The clock of the simulated bus and devices; the paced clock of a live fleet implements it too. */
export interface SimClock extends Clock {
  /**
   * Returns a timer that calls `fn` with `of`. It can be set repeatedly, without new objects or functions.
   */
  timer<T>(fn: (of: T) => void, of: T, rank: TimerRank): SimTimer
}

export interface SimTimer {
  /** Runs the function at that instant instead of the one set before. */
  set(instant: Instant): void
  /** Cancels it, unless it is set again. */
  clear(): void
}

const RANKS = 4

export class VirtualClock implements SimClock {
  #now: Instant
  #tickets = 0
  readonly #heap = new TimerHeap<VirtualTimer>()
  /** Due in this instant, by rank. */
  readonly #due: readonly DueList[] = Array.from({ length: RANKS }, () => new DueList())
  /** Number of entries in these lists. */
  #dueCount = 0
  /** Timers run so far. */
  steps = 0

  constructor(start: Instant) {
    this.#now = start
  }

  now(): Instant {
    return this.#now
  }

  at(instant: Instant, fn: () => void, rank: TimerRank = RANK_DECISION): CancelTimer {
    const timer = this.timer(fn, undefined, rank)
    timer.set(instant)
    return () => timer.clear()
  }

  soon(fn: () => void, rank: TimerRank): void {
    ;(this.#due[rank] as DueList).push(fn, 0)
    this.#dueCount += 1
  }

  timer<T>(fn: (of: T) => void, of: T, rank: TimerRank): SimTimer {
    return new VirtualTimer(this, fn as (of: unknown) => void, of, rank)
  }

  /** For its timers. */
  plan(timer: VirtualTimer, instant: Instant): void {
    timer.ticket = ++this.#tickets
    if (instant > this.#now) this.#heap.push(instant, timer)
    else this.#join(timer)
  }

  /** Runs the next timer, unless it is after `until`; returns false without one. */
  step(until: Instant): boolean {
    const due = (this.#dueCount > 0 ? this.#nextDue() : null) ?? this.#nextPlanned(until)
    if (due === null) return false
    this.steps += 1
    if (typeof due === 'function') due()
    else due.run()
    return true
  }

  /**
   * Runs everything up to and including `until`, or until `isDone` returns true; time is then `until` unless
   * it stopped before.
   */
  run(until: Instant, isDone: () => boolean): void {
    while (!isDone() && this.step(until)) {
      /* the step did the work */
    }
  }

  /** Moves time forward without running anything; nothing may be due before. */
  advanceTo(instant: Instant): void {
    if (instant > this.#now) this.#now = instant
  }

  /** The next instant at which a timer is due; null without one. */
  nextAt(): Instant | null {
    if (this.#dueCount > 0) return this.#now
    const at = this.#heap.nextAt()
    return at === Infinity ? null : at
  }

  #join(timer: VirtualTimer): void {
    ;(this.#due[timer.rank] as DueList).push(timer, timer.ticket)
    this.#dueCount += 1
  }

  #nextDue(): Due | null {
    for (let rank = 0; rank < RANKS; rank++) {
      const list = this.#due[rank] as DueList
      while (!list.isEmpty) {
        const ticket = list.firstTicket
        const next = list.take()
        this.#dueCount -= 1
        if (typeof next === 'function') return next
        if (next.ticket !== ticket) continue
        next.ticket = 0
        return next
      }
    }
    return null
  }

  #nextPlanned(until: Instant): Due | null {
    const at = this.#heap.nextAt()
    if (at > until || at === Infinity) return null
    const first = this.#heap.pop()
    if (at > this.#now) {
      this.#now = at
      // All other timers of this instant join the lists, so that ranks apply to all of them, including those
      // that become due.
      while (this.#heap.nextAt() === at) this.#join(this.#heap.pop())
    }
    first.ticket = 0
    return first
  }
}

class VirtualTimer implements SimTimer, Ticketed {
  ticket = 0
  readonly rank: TimerRank
  readonly #fn: (of: unknown) => void
  readonly #of: unknown
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock, fn: (of: unknown) => void, of: unknown, rank: TimerRank) {
    this.#clock = clock
    this.#fn = fn
    this.#of = of
    this.rank = rank
  }

  run(): void {
    const fn = this.#fn
    fn(this.#of)
  }

  set(instant: Instant): void {
    this.#clock.plan(this, instant)
  }

  clear(): void {
    this.ticket = 0
  }
}

/** A function for this instant, or a timer. */
type Due = (() => void) | VirtualTimer

/** First in, first out. It keeps its memory when it is empty, which happens in every instant. */
class DueList {
  readonly #items: (Due | null)[] = []
  /** Tickets of the timers when they were set; 0 for functions. */
  readonly #tickets: number[] = []
  #head = 0
  #tail = 0

  get isEmpty(): boolean {
    return this.#head === this.#tail
  }

  get firstTicket(): number {
    return this.#tickets[this.#head] as number
  }

  push(due: Due, ticket: number): void {
    this.#items[this.#tail] = due
    this.#tickets[this.#tail] = ticket
    this.#tail += 1
  }

  /** Removes the first entry; there must be one. */
  take(): Due {
    const due = this.#items[this.#head] as Due
    this.#items[this.#head++] = null
    if (this.#head === this.#tail) {
      this.#head = 0
      this.#tail = 0
    }
    return due
  }
}
