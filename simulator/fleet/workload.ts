/** What the tasks of a run do once they run: looked up by the simulated devices, because the wire carries no such thing. */
import type { AllocSteps } from '../scenario/scenario.ts'
import type { Work } from '../trace/trace-format.ts'
import { workOfCommand } from './command-work.ts'

export interface Workload {
  /** A task nobody described (submitted by hand, over REST) does what its command says (`headroom work busy=10m`), else it stays busy until it is cancelled. */
  workOf(taskId: string, command: readonly string[] | null): Work
  allocStepsOf(taskId: string): AllocSteps
}

/** Ten years: longer than any run. */
export const ENDLESS: Work = { kind: 'duration', ms: 315_360_000_000 }
const NO_STEPS: AllocSteps = []

export class OpenWorkload implements Workload {
  readonly #works = new Map<string, Work>()
  readonly #steps = new Map<string, AllocSteps>()

  add(taskId: string, work: Work, steps: AllocSteps): void {
    this.#works.set(taskId, work)
    if (steps.length > 0) this.#steps.set(taskId, steps)
  }

  /** The task is over. */
  forget(taskId: string): void {
    this.#works.delete(taskId)
    this.#steps.delete(taskId)
  }

  workOf(taskId: string, command: readonly string[] | null): Work {
    return this.#works.get(taskId) ?? workOfCommand(command) ?? ENDLESS
  }

  allocStepsOf(taskId: string): AllocSteps {
    return this.#steps.get(taskId) ?? NO_STEPS
  }
}
