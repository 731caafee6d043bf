/** A task's work as the device walks through it: what it does next, and when it is done. Wall times are since its first start. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'

/** busy: GPU work of so many ms. idle: none until that offset. done: it ends. */
export type Step =
  { readonly kind: 'busy'; readonly ms: DurationMs } | { readonly kind: 'idle'; readonly ms: DurationMs } | { readonly kind: 'done' }

const DONE: Step = { kind: 'done' }

export class WorkCursor {
  readonly #work: Work
  #next = 0
  #isIdleNext = false

  constructor(work: Work) {
    this.#work = work
  }

  /** The next step, when the one before is over. @param sinceStartMs wall time since the first start */
  step(sinceStartMs: DurationMs): Step {
    const work = this.#work
    switch (work.kind) {
      case 'duration':
        return this.#next++ === 0 ? { kind: 'busy', ms: work.ms } : DONE
      case 'phases':
        return this.#phase(work.phases)
      case 'bursts':
        return this.#burst(work, sinceStartMs)
    }
  }

  #phase(phases: ReadonlyArray<readonly [DurationMs, DurationMs]>): Step {
    for (; this.#next < phases.length;) {
      const [busyMs, idleMs] = phases[this.#next] as readonly [DurationMs, DurationMs]
      if (!this.#isIdleNext) {
        this.#isIdleNext = true
        if (busyMs > 0) return { kind: 'busy', ms: busyMs }
      }
      this.#isIdleNext = false
      this.#next += 1
      if (idleMs > 0) return { kind: 'idle', ms: idleMs }
    }
    return DONE
  }

  /** Requests that came while it was busy follow at once, first in, first out. */
  #burst(work: Extract<Work, { kind: 'bursts' }>, sinceStartMs: DurationMs): Step {
    const request = work.at[this.#next]
    if (request === undefined) return sinceStartMs < work.stayMs ? { kind: 'idle', ms: work.stayMs - sinceStartMs } : DONE
    const [offsetMs, busyMs] = request
    if (offsetMs > sinceStartMs) return { kind: 'idle', ms: offsetMs - sinceStartMs }
    this.#next += 1
    return { kind: 'busy', ms: busyMs }
  }
}
