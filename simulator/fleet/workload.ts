/**
 * What the tasks of a run do once they run: looked up by the simulated devices, because the wire carries no
 * such thing.
 */
import type { AllocSteps } from '../scenario/scenario.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { WorkPlan } from './work-plan.ts'

export interface Workload {
  /**
   * A task nobody described (submitted by hand, over REST) does what its command says (`headroom work
   * busy=10m`), else it stays busy until it is cancelled.
   */
  planOf(taskId: string, command: readonly string[] | null): WorkPlan
  allocStepsOf(taskId: string): AllocSteps
  /** How long the task takes to end after SIGTERM, 0 unless it was described otherwise. */
  stopTakesMs?(taskId: string): DurationMs
}
