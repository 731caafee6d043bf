/** A task's work as the device walks through it: what it does next, and when it is done. Wall times are since its first start. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'

export class WorkCursor {
  /** The present step is GPU work of `stepMs`; else there is none for so long. */
  isBusy = false
  stepMs: DurationMs = 0
  readonly #work: Work
  #next = 0
  #isIdleNext = false

  constructor(work: Work) {
    this.#work = work
  }

  /** Goes on to the next step, when the one before is over; false when there is none. @param sinceStartMs wall time since the first start */
  advance(sinceStartMs: DurationMs): boolean {
    const work = this.#work
    switch (work.kind) {
      case 'duration':
        return this.#next++ === 0 && this.#take(true, work.ms)
      case 'phases':
        return this.#phase(work.phases)
      case 'bursts':
        return this.#burst(work, sinceStartMs)
    }
  }

  #phase(phases: ReadonlyArray<readonly [DurationMs, DurationMs]>): boolean {
    for (; this.#next < phases.length;) {
      const phase = phases[this.#next] as readonly [DurationMs, DurationMs]
      if (!this.#isIdleNext) {
        this.#isIdleNext = true
        if (phase[0] > 0) return this.#take(true, phase[0])
      }
      this.#isIdleNext = false
      this.#next += 1
      if (phase[1] > 0) return this.#take(false, phase[1])
    }
    return false
  }

  /** Requests that came while it was busy follow at once, first in, first out. */
  #burst(work: Extract<Work, { kind: 'bursts' }>, sinceStartMs: DurationMs): boolean {
    const request = work.at[this.#next]
    if (request === undefined) return sinceStartMs < work.stayMs && this.#take(false, work.stayMs - sinceStartMs)
    const [offsetMs, busyMs] = request
    if (offsetMs > sinceStartMs) return this.#take(false, offsetMs - sinceStartMs)
    this.#next += 1
    return this.#take(true, busyMs)
  }

  #take(isBusy: boolean, ms: DurationMs): true {
    this.isBusy = isBusy
    this.stepMs = ms
    return true
  }
}
