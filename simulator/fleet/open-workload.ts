/** The workload of a run: the work of each task. */
import type { AllocSteps } from '../scenario/scenario.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'
import { workOfCommand } from './command-work.ts'
import { planOf, type WorkPlan } from './work-plan.ts'
import type { Workload } from './workload.ts'

/** Ten years: longer than any run. */
export const ENDLESS = { kind: 'duration', ms: 315_360_000_000 } as const satisfies Work
const NO_STEPS: AllocSteps = []

export class OpenWorkload implements Workload {
  readonly #plans = new Map<string, WorkPlan>()
  readonly #steps = new Map<string, AllocSteps>()
  readonly #stops = new Map<string, DurationMs>()

  add(taskId: string, work: Work, steps: AllocSteps, stopTakesMs: DurationMs = 0): void {
    this.#plans.set(taskId, planOf(work))
    if (stopTakesMs > 0) this.#stops.set(taskId, stopTakesMs)
    if (steps.length > 0) this.#steps.set(taskId, steps)
  }

  /** The task has ended. */
  forget(taskId: string): void {
    this.#plans.delete(taskId)
    if (this.#steps.size > 0) this.#steps.delete(taskId)
    if (this.#stops.size > 0) this.#stops.delete(taskId)
  }

  planOf(taskId: string, command: readonly string[] | null): WorkPlan {
    const known = this.#plans.get(taskId)
    if (known !== undefined) return known
    const work = workOfCommand(command)
    return work === null ? ENDLESS : planOf(work)
  }

  allocStepsOf(taskId: string): AllocSteps {
    return this.#steps.get(taskId) ?? NO_STEPS
  }

  stopTakesMs(taskId: string): DurationMs {
    return this.#stops.get(taskId) ?? 0
  }
}
