/** A task's work as the device walks through it: what it does next, and when it is done. */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'

type Phases = ReadonlyArray<readonly [DurationMs, DurationMs]>
type Bursts = Extract<Work, { kind: 'bursts' }>

export class WorkCursor {
  /** The present step is GPU work of `stepMs`; else there is none for so long. */
  isBusy = false
  stepMs: DurationMs = 0
  /** The next of the steps, or of the bursts. */
  #next = 0
  /** Of phases: GPU work and none in turn, in one list, so that a step is one look; null for work of another kind. */
  readonly #steps: readonly DurationMs[] | null
  readonly #work: Work
  /** First of all; times of arrival count from then. */
  readonly #startedAt: Instant
  #hasBegun = false

  constructor(work: Work, startedAt: Instant) {
    this.#work = work
    this.#startedAt = startedAt
    this.#steps = work.kind === 'phases' ? stepsOf(work.phases) : null
  }

  /** Goes on to the next step, when the one before is over; false when there is none. */
  advance(now: Instant): boolean {
    this.#hasBegun = true
    if (this.#steps !== null) return this.#step(this.#steps)
    const work = this.#work
    if (work.kind === 'bursts') return this.#burst(work, now - this.#startedAt)
    return work.kind === 'duration' && this.#next++ === 0 && this.#take(true, work.ms)
  }

  /**
   * What is left to do, as work that begins with the present step: GPU work of `busyMs`, or none for `idleMs`. Of bursts the times of arrival stay
   * those since the first start. All of it, while its process starts.
   */
  workLeft(busyMs: DurationMs, idleMs: DurationMs, now: Instant): Work {
    const work = this.#work
    if (!this.#hasBegun) return work
    switch (work.kind) {
      case 'duration':
        return { kind: 'duration', ms: Math.max(1, busyMs) }
      case 'phases':
        return { kind: 'phases', phases: this.#phasesLeft(work.phases, busyMs, idleMs) }
      case 'bursts': {
        const later = work.at.slice(this.#next)
        const sinceStartMs = now - this.#startedAt
        return { ...work, at: busyMs > 0 ? [[Math.min(sinceStartMs, later[0]?.[0] ?? sinceStartMs), busyMs], ...later] : later }
      }
    }
  }

  #phasesLeft(phases: Phases, busyMs: DurationMs, idleMs: DurationMs): Phases {
    // While it works the pause of this phase is still to come; while it pauses the phase is past.
    const at = this.#next >>> 1
    if (!this.isBusy) return [[0, Math.max(1, idleMs)], ...phases.slice(at)]
    return [[Math.max(1, busyMs), (phases[at] as Phases[number])[1]], ...phases.slice(at + 1)]
  }

  #step(steps: readonly DurationMs[]): boolean {
    while (this.#next < steps.length) {
      const place = this.#next++
      const ms = steps[place] as DurationMs
      if (ms > 0) return this.#take(place % 2 === 0, ms)
    }
    return false
  }

  /** Requests that came while it was busy follow at once, first in, first out. */
  #burst(work: Bursts, sinceStartMs: DurationMs): boolean {
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

function stepsOf(phases: Phases): DurationMs[] {
  const steps = new Array<DurationMs>(2 * phases.length)
  for (let at = 0; at < phases.length; at++) {
    const [busyMs, idleMs] = phases[at] as Phases[number]
    steps[2 * at] = busyMs
    steps[2 * at + 1] = idleMs
  }
  return steps
}
