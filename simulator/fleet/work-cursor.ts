/** The next step of a task's process, and when it is done. */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'
import { phasesFrom, workOf, type WorkPlan } from './work-plan.ts'

type Bursts = Extract<WorkPlan, { kind: 'bursts' }>
type Phases = Extract<Work, { kind: 'phases' }>['phases']

export class WorkCursor {
  /** The current step is GPU work of `stepMs`, or an idle time of that length. */
  isBusy = false
  stepMs: DurationMs = 0
  /** Next step, or next burst. */
  #next = 0
  /** Null for work without bursts. */
  readonly #steps: readonly DurationMs[] | null
  readonly #plan: WorkPlan
  /** Start of the first attempt; times of arrival count from it. */
  readonly #startedAt: Instant
  #hasBegun = false

  constructor(plan: WorkPlan, startedAt: Instant) {
    this.#plan = plan
    this.#startedAt = startedAt
    this.#steps = plan.kind === 'steps' ? plan.steps : null
  }

  /** Moves to the next step when the current one is over; returns false after the last. */
  advance(now: Instant): boolean {
    this.#hasBegun = true
    if (this.#steps !== null) return this.#step(this.#steps)
    const plan = this.#plan
    if (plan.kind === 'bursts') return this.#burst(plan, now - this.#startedAt)
    return plan.kind === 'duration' && this.#next++ === 0 && this.#take(true, plan.ms)
  }

  /**
   * The remaining work, beginning with the current step: GPU work of `busyMs`, or an idle time of `idleMs`.
   * Times of arrival of bursts still count from the first start. All of it while its process starts.
   */
  workLeft(busyMs: DurationMs, idleMs: DurationMs, now: Instant): Work {
    const plan = this.#plan
    if (!this.#hasBegun) return workOf(plan)
    switch (plan.kind) {
      case 'duration':
        return { kind: 'duration', ms: Math.max(1, busyMs) }
      case 'steps':
        return { kind: 'phases', phases: this.#phasesLeft(plan.steps, busyMs, idleMs) }
      case 'bursts': {
        const later = plan.at.slice(this.#next)
        const sinceStartMs = now - this.#startedAt
        return {
          ...plan,
          at:
            busyMs > 0 ? [[Math.min(sinceStartMs, later[0]?.[0] ?? sinceStartMs), busyMs], ...later] : later,
        }
      }
    }
  }

  /** While it works, the pause of its phase is still to come; while it pauses, the phase is over. */
  #phasesLeft(steps: readonly DurationMs[], busyMs: DurationMs, idleMs: DurationMs): Phases {
    if (!this.isBusy) return [[0, Math.max(1, idleMs)], ...phasesFrom(steps, this.#next)]
    return [[Math.max(1, busyMs), steps[this.#next] as DurationMs], ...phasesFrom(steps, this.#next + 1)]
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
    if (request === undefined)
      return sinceStartMs < work.stayMs && this.#take(false, work.stayMs - sinceStartMs)
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
