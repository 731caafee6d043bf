/** A task's work as the device walks through it: what it does next, and when it is done. Wall times are since its first start. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'

type Phases = ReadonlyArray<readonly [DurationMs, DurationMs]>

export class WorkCursor {
  /** The present step is GPU work of `stepMs`; else there is none for so long. */
  isBusy = false
  stepMs: DurationMs = 0
  readonly #work: Work
  #hasBegun = false
  #next = 0
  #isIdleNext = false

  constructor(work: Work) {
    this.#work = work
  }

  /** Goes on to the next step, when the one before is over; false when there is none. @param sinceStartMs wall time since the first start */
  advance(sinceStartMs: DurationMs): boolean {
    this.#hasBegun = true
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

  /**
   * What is left to do, as work that begins with the present step: GPU work of `busyMs`, or none for `idleMs`. Of bursts the times of arrival stay
   * those since the first start. All of it, while its process starts.
   */
  workLeft(busyMs: DurationMs, idleMs: DurationMs, sinceStartMs: DurationMs): Work {
    const work = this.#work
    if (!this.#hasBegun) return work
    switch (work.kind) {
      case 'duration':
        return { kind: 'duration', ms: Math.max(1, busyMs) }
      case 'phases':
        return { kind: 'phases', phases: this.#phasesLeft(work.phases, busyMs, idleMs) }
      case 'bursts': {
        const later = work.at.slice(this.#next)
        return { ...work, at: busyMs > 0 ? [[Math.min(sinceStartMs, later[0]?.[0] ?? sinceStartMs), busyMs], ...later] : later }
      }
    }
  }

  #phasesLeft(phases: Phases, busyMs: DurationMs, idleMs: DurationMs): Phases {
    // While it works the pause of this phase is still to come; while it pauses the phase is past.
    if (!this.isBusy) return [[0, Math.max(1, idleMs)], ...phases.slice(this.#next)]
    return [[Math.max(1, busyMs), (phases[this.#next] as Phases[number])[1]], ...phases.slice(this.#next + 1)]
  }

  #phase(phases: Phases): boolean {
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
