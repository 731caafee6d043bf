/**
 * Real time behind the `Clock` port. Instants start at the wall clock's and advance with the monotonic one:
 * they never decrease and never jump, so that a changed clock ends no lease. They stop while the host sleeps,
 * which only shortens the counted silence.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { CancelTimer, Clock, TimerRank } from '../ports/clock.ts'
import { RANK_DECISION } from '../ports/clock.ts'

export interface SystemClock extends Clock {
  /** Number of pending timers. */
  readonly pending: number
  /** Number of pending timers, and cancelled ones still in memory. */
  readonly held: number
  /** Stops all timers. */
  stop(): void
}

interface Timer {
  readonly at: Instant
  readonly rank: TimerRank
  readonly order: number
  /** Null once it has run or was cancelled. */
  fn: (() => void) | null
}

/** Number of timers after which I/O is handled. */
const TIMERS_PER_TURN = 256
/** Platform timers wait at most about 24 days; longer waits are split. */
const LONGEST_WAIT_MS = 60_000
/** Cancelled timers are removed from the heap once they outnumber the others and exceed this number. */
const COMPACT_FROM_TIMERS = 1_024

/**
 * @param hostNow a clock of the host in integer ms; it never decreases, and is no faster than the monotonic
 * one while the host is awake
 * @param offsetMs what is added to it; it changes once at most, before the clock is used
 */
export function createSystemClock(hostNow?: () => Instant, offsetMs?: () => DurationMs): SystemClock {
  const now = hostNow ?? sinceTheWallClock()
  return new RealClock(offsetMs === undefined ? now : () => now() + offsetMs())
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
  /** Time stands still within a slice, so that ranks have the same meaning as in virtual time. */
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

  /** Runs due timers in the order of instants and ranks, including those that become due meanwhile. */
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

/** 1. Earlier. 2. Lower rank. 3. Requested earlier. */
function isBefore(a: Timer, b: Timer): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.rank !== b.rank ? a.rank < b.rank : a.order < b.order
}
