/** The work of a run's tasks, looked up by the simulated devices, because the wire does not carry it. */
import type { AllocSteps } from '../scenario/scenario.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { WorkPlan } from './work-plan.ts'

export interface Workload {
  /**
   * A task without a description (submitted by an operator over REST) does the work of its command (`headroom
   * work busy=10m`), or stays busy until it is cancelled.
   */
  planOf(taskId: string, command: readonly string[] | null): WorkPlan
  allocStepsOf(taskId: string): AllocSteps
  /** Time from SIGTERM to the end of the task; 0 by default. */
  stopTakesMs?(taskId: string): DurationMs
}
