/** One run of a sweep, made in a worker process. */
import type { RunIdentity } from '../../simulator/run/run.ts'
import { runScenario } from '../../simulator/run/run.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { sweepRunOf } from '../../simulator/experiment/sweep/sweep.ts'
import type { SweepJob, SweepRun } from '../../simulator/experiment/sweep/sweep.ts'
import { openRunFolder } from '../runs/run-folder.ts'
import { createStopwatch, startTiming } from '../runs/stopwatch.ts'
import type { Timing } from '../runs/stopwatch.ts'
import { keepRun, partialFolder } from './run-store.ts'

export interface SweepTask {
  readonly scenario: Scenario
  readonly identity: RunIdentity
  readonly expectedTasks: number
  readonly job: SweepJob
  /** Destination of its files; null: only the result is needed. */
  readonly store: SweepRunStore | null
}

export interface SweepRunStore {
  /** The folder of the sweep. */
  readonly folder: string
  readonly commit: string | null
  readonly hasJournal: boolean
}

export interface SweepAnswer {
  readonly run: SweepRun
  readonly timing: Timing
  readonly operatorFaults: readonly string[]
}

export async function runSweepTask(
  task: SweepTask,
  onProgress: (fraction: number) => void,
): Promise<SweepAnswer> {
  const { scenario, identity, expectedTasks, job, store } = task
  const partial = store === null ? null : partialFolder(store.folder, job)
  const folder =
    store === null || partial === null
      ? null
      : openRunFolder(partial, scenario.clock.startMs, {
          hasJournal: store.hasJournal,
          option: `--out ${store.folder}`,
        })
  const stopwatch = createStopwatch()
  const takeTiming = startTiming(stopwatch)
  const run = await runScenario(scenario, identity, {
    seed: job.seed,
    overcommitPercent: job.overcommitPercent,
    expectedTasks,
    stopwatch,
    onProgress,
    ...folder?.options,
    ...(scenario.operator.length === 0
      ? {}
      : { openOperatorClient: (await import('../runs/operator-client.ts')).openOperatorClient }),
  })
  const timing = takeTiming()
  const { result, operatorFaults } = run
  if (store !== null && partial !== null && folder !== null) {
    folder.finish(run, timing)
    keepRun(store.folder, partial, { ...identity, ...store, job }, operatorFaults)
  }
  return { run: sweepRunOf(job, result), timing, operatorFaults }
}
