/**
 * Virtual time: a binary heap of timers, and one first-in-first-out list per rank for what is due in the current instant. Nothing sleeps;
 * `step` runs the next thing and moves time to it.
 */
import type { Instant } from '../protocol/units.ts'
import type { CancelTimer, Clock, TimerRank } from '../controller/ports/clock.ts'
import { RANK_DECISION } from '../controller/ports/clock.ts'

/** What the simulated bus and devices need of time; the paced clock of a live fleet has it too. */
export interface SimClock extends Clock {
  /** Like `at` for the current instant, without a way back: the hot path. */
  soon(fn: () => void, rank: TimerRank): void
  /** Like `at`; the way back is to set the handle's `fn` to null. */
  schedule(instant: Instant, fn: () => void, rank: TimerRank): TimerHandle
}

/** A timer that has not run: without a function it never will. */
export interface TimerHandle {
  fn: (() => void) | null
}

interface Timer extends TimerHandle {
  readonly at: Instant
  readonly rank: TimerRank
  readonly order: number
}

const RANKS = 4

export class VirtualClock implements SimClock {
  #now: Instant
  #order = 0
  readonly #heap: Timer[] = []
  /** What is due in this instant, by rank; `#heads` says how far each list has been run. */
  readonly #due: (Timer | (() => void))[][] = [[], [], [], []]
  readonly #heads = [0, 0, 0, 0]
  /** Timers run so far. */
  steps = 0

  constructor(start: Instant) {
    this.#now = start
  }

  now(): Instant {
    return this.#now
  }

  at(instant: Instant, fn: () => void, rank: TimerRank = RANK_DECISION): CancelTimer {
    const timer = this.schedule(instant, fn, rank)
    return () => {
      timer.fn = null
    }
  }

  schedule(instant: Instant, fn: () => void, rank: TimerRank): TimerHandle {
    const timer: Timer = { at: instant, rank, order: this.#order++, fn }
    if (instant <= this.#now) (this.#due[rank] as Timer[]).push(timer)
    else this.#push(timer)
    return timer
  }

  soon(fn: () => void, rank: TimerRank): void {
    ;(this.#due[rank] as (() => void)[]).push(fn)
  }

  /** Runs the next timer, unless it lies after `until`; false when there is none. */
  step(until: Instant): boolean {
    for (;;) {
      const fn = this.#nextDue() ?? this.#nextFromHeap(until)
      if (fn === null) return false
      if (fn === SKIPPED) continue
      this.steps += 1
      fn()
      return true
    }
  }

  /** Runs everything up to and including `until`, or until `isDone` says so; time is then `until` unless it stopped before. */
  run(until: Instant, isDone: () => boolean): void {
    while (!isDone() && this.step(until)) {
      /* the step did the work */
    }
  }

  /** Moves time forward without running anything; nothing may be due before. */
  advanceTo(instant: Instant): void {
    if (instant > this.#now) this.#now = instant
  }

  /** The next instant at which something is due; null when nothing is. */
  nextAt(): Instant | null {
    for (let rank = 0; rank < RANKS; rank++) {
      if ((this.#heads[rank] as number) < (this.#due[rank] as unknown[]).length) return this.#now
    }
    while (this.#heap.length > 0 && (this.#heap[0] as Timer).fn === null) this.#pop()
    return this.#heap[0]?.at ?? null
  }

  #nextDue(): (() => void) | null {
    for (let rank = 0; rank < RANKS; rank++) {
      const list = this.#due[rank] as (Timer | (() => void))[]
      const head = this.#heads[rank] as number
      if (head >= list.length) continue
      const next = list[head] as Timer | (() => void)
      if (head + 1 === list.length) {
        list.length = 0
        this.#heads[rank] = 0
      } else this.#heads[rank] = head + 1
      return typeof next === 'function' ? next : (next.fn ?? SKIPPED)
    }
    return null
  }

  #nextFromHeap(until: Instant): (() => void) | null {
    const first = this.#heap[0]
    if (first === undefined || first.at > until) return null
    this.#pop()
    if (first.fn === null) return SKIPPED
    if (first.at > this.#now) {
      this.#now = first.at
      // Everything else of this instant joins the lists, so that ranks hold across what is due and what becomes due.
      for (let next = this.#heap[0]; next !== undefined && next.at === first.at; next = this.#heap[0]) {
        this.#pop()
        if (next.fn !== null) (this.#due[next.rank] as Timer[]).push(next)
      }
    }
    return first.fn
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
    const length = heap.length
    if (length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= length) break
      if (child + 1 < length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1
      const other = heap[child] as Timer
      if (!isBefore(other, last)) break
      heap[at] = other
      at = child
    }
    heap[at] = last
  }
}

const SKIPPED = (): void => {}

/** 1. Earlier. 2. Lower rank. 3. Asked for earlier. */
function isBefore(a: Timer, b: Timer): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.rank !== b.rank ? a.rank < b.rank : a.order < b.order
}
