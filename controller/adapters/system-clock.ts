/**
 * Real time behind the `Clock` port. Instants begin at the wall clock's and go on by the monotonic one: they
 * never fall and never jump, so that no lease seems to end because somebody set a clock. While the host
 * sleeps they stand still, which only makes silence count less.
 */
import type { Instant } from '../../protocol/units.ts'
import type { CancelTimer, Clock, TimerRank } from '../ports/clock.ts'
import { RANK_DECISION } from '../ports/clock.ts'

export interface SystemClock extends Clock {
  /** Timers that have neither run nor been taken back. */
  readonly pending: number
  /** Those, and those taken back that still take memory. */
  readonly held: number
  /** Nothing runs any more. */
  stop(): void
}

interface Timer {
  readonly at: Instant
  readonly rank: TimerRank
  readonly order: number
  /** Null once it has run or was taken back. */
  fn: (() => void) | null
}

/** Requests and commits get their turn after so many timers. */
const TIMERS_PER_TURN = 256
/**
 * Timers of the platform take no longer waits than some 24 days; one that is due later is waited for in
 * steps.
 */
const LONGEST_WAIT_MS = 60_000
/** Timers that were taken back leave the heap once they are more than the others, and more than this. */
const COMPACT_FROM_TIMERS = 1_024

/**
 * @param hostNow another clock of the host than that, in whole ms; it never falls, and is no faster than the
 *   monotonic one while the host is awake.
 */
export function createSystemClock(hostNow?: () => Instant): SystemClock {
  return new RealClock(hostNow ?? sinceTheWallClock())
}

function sinceTheWallClock(): () => Instant {
  const anchor = Date.now() - performance.now()
  return () => Math.floor(anchor + performance.now())
}

class RealClock implements SystemClock {
  readonly #realNow: () => Instant
  #heap: Timer[] = []
  #order = 0
  #cancelled = 0
  /** Within a turn time stands still, so that ranks mean what they mean in virtual time. */
  #turnAt: Instant | null = null
  #isTurnPlanned = false
  #isStopped = false
  #timeout: NodeJS.Timeout | undefined
  #timeoutAt = Infinity

  constructor(realNow: () => Instant) {
    this.#realNow = realNow
  }

  get pending(): number {
    return this.#heap.length - this.#cancelled
  }

  get held(): number {
    return this.#heap.length
  }

  now(): Instant {
    return this.#turnAt ?? this.#realNow()
  }

  at(instant: Instant, fn: () => void, rank: TimerRank = RANK_DECISION): CancelTimer {
    const now = this.now()
    if (this.#isStopped) return () => {}
    const timer: Timer = { at: Math.max(instant, now), rank, order: this.#order++, fn }
    this.#push(timer)
    this.#plan(timer.at, now)
    return () => this.#cancel(timer)
  }

  soon(fn: () => void, rank: TimerRank): void {
    this.at(this.now(), fn, rank)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timeout)
    this.#heap = []
    this.#cancelled = 0
  }

  #plan(at: Instant, now: Instant): void {
    if (this.#turnAt !== null) return
    if (at <= now) {
      if (this.#isTurnPlanned) return
      this.#isTurnPlanned = true
      setImmediate(() => this.#turn())
      return
    }
    if (at >= this.#timeoutAt) return
    clearTimeout(this.#timeout)
    this.#timeoutAt = at
    this.#timeout = setTimeout(() => this.#turn(), Math.min(at - now, LONGEST_WAIT_MS))
  }

  /** Runs what is due, in the order of instants and ranks; what becomes due meanwhile joins in. */
  #turn(): void {
    this.#isTurnPlanned = false
    if (this.#isStopped) return
    clearTimeout(this.#timeout)
    this.#timeoutAt = Infinity
    const now = this.#realNow()
    this.#turnAt = now
    try {
      for (let left = TIMERS_PER_TURN; left > 0; left--) {
        const fn = this.#takeDue(now)
        if (fn === null) break
        fn()
      }
    } finally {
      this.#turnAt = null
      const next = this.#heap[0]
      if (next !== undefined) this.#plan(next.at, this.#realNow())
    }
  }

  #takeDue(now: Instant): (() => void) | null {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || first.at > now) return null
      this.#pop()
      const { fn } = first
      first.fn = null
      if (fn !== null) return fn
      this.#cancelled -= 1
    }
  }

  #cancel(timer: Timer): void {
    if (timer.fn === null || this.#isStopped) return
    timer.fn = null
    this.#cancelled += 1
    if (this.#cancelled < COMPACT_FROM_TIMERS || 2 * this.#cancelled < this.#heap.length) return
    // A sorted array is a heap.
    this.#heap = this.#heap.filter((each) => each.fn !== null).sort((a, b) => (isBefore(a, b) ? -1 : 1))
    this.#cancelled = 0
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(timer)
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const other = heap[parent] as Timer
      if (!isBefore(timer, other)) break
      heap[at] = other
      at = parent
    }
    heap[at] = timer
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1
      const other = heap[child] as Timer
      if (!isBefore(other, last)) break
      heap[at] = other
      at = child
    }
    heap[at] = last
  }
}

/** 1. Earlier. 2. Lower rank. 3. Asked for earlier. */
function isBefore(a: Timer, b: Timer): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.rank !== b.rank ? a.rank < b.rank : a.order < b.order
}
