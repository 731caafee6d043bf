/** One run of a sweep: what a worker thread does with a job, and the main thread when there is only one job at a time. */
import type { RunIdentity } from '../simulator/run.ts'
import { runScenario } from '../simulator/run.ts'
import type { Scenario } from '../simulator/scenario/scenario.ts'
import { sweepRunOf } from '../simulator/sweep.ts'
import type { SweepJob, SweepRun } from '../simulator/sweep.ts'
import { createStopwatch, startTiming } from './stopwatch.ts'
import type { Timing } from './stopwatch.ts'

export interface SweepTask {
  readonly scenario: Scenario
  readonly identity: RunIdentity
  readonly expectedTasks: number
  readonly job: SweepJob
}

export interface SweepAnswer {
  readonly run: SweepRun
  readonly timing: Timing
  readonly operatorFaults: readonly string[]
}

export async function runSweepTask(task: SweepTask, onProgress: (fraction: number) => void): Promise<SweepAnswer> {
  const { scenario, identity, expectedTasks, job } = task
  const stopwatch = createStopwatch()
  const takeTiming = startTiming(stopwatch)
  const { result, operatorFaults } = await runScenario(scenario, identity, {
    seed: job.seed,
    overcommitPercent: job.overcommitPercent,
    expectedTasks,
    stopwatch,
    onProgress,
    ...(scenario.operator.length === 0 ? {} : { openDesk: (await import('./operator-desk.ts')).openDesk }),
  })
  return { run: sweepRunOf(job, result), timing: takeTiming(), operatorFaults }
}
