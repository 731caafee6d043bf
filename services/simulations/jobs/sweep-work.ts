/**
 * A sweep over REST: the same runs as `headroom sim sweep`, a few processes at a time. Finished runs are
 * kept, however it ends.
 */
import type { SweepReportBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import type { Idleness } from '../../../simulator/experiment/advisor/idleness.ts'
import type { Objective } from '../../../simulator/experiment/advisor/objective.ts'
import type { ScenarioSource } from '../../../simulator/scenario/load.ts'
import {
  overridesOf,
  settingsText,
  sweepJobs,
  sweepRunOf,
  type Settings,
  type SweepJob,
  type SweepRun,
} from '../../../simulator/experiment/sweep/sweep.ts'
import type { SweepGrid } from '../../../simulator/experiment/sweep/sweep-grid.ts'
import { JobProcess } from '../../workers/job-process.ts'
import { sweepJson, sweepReport } from '../../sweep/sweep-report.ts'
import { progressOf } from '../../workers/worker-pool.ts'
import { workerUrl } from '../../workers/worker-url.ts'
import { LIMITS, SWEEP_PROCESSES } from '../library/limits.ts'
import type { Work } from './queue.ts'
import { REPORT, runFile, type RecordStore } from './records.ts'
import type { RunAnswer, RunJob } from './run-job.ts'

export interface SweepWork {
  readonly source: ScenarioSource
  readonly untilMs: number | null
  readonly grid: SweepGrid
  readonly objectives: readonly Objective[]
}

export function sweepWork(sweep: SweepWork, id: string, store: RecordStore): Work {
  return async ({ signal, onProgress }) => {
    const { percentages, seeds, axes } = sweep.grid
    const jobs = sweepJobs(percentages, seeds, axes)
    const runs = new Array<SweepRun | undefined>(jobs.length)
    const idleness = new Map<string, Idleness>()
    const keepResidency = keeperOf(id, store, 'residency', LIMITS.sweptResidencyBytes)
    const keepSeries = keeperOf(id, store, 'series', LIMITS.sweptSeriesBytes)
    const take = async (
      index: number,
      { result, residency, series, idleness: found }: RunAnswer,
    ): Promise<void> => {
      const job = jobs[index] as SweepJob
      runs[index] = sweepRunOf(job, result)
      if (found !== null) idleness.set(settingsText(job.settings), found)
      await keepResidency(job, residency)
      await keepSeries(job, series)
    }
    try {
      await runAll(
        jobs.map((job) => jobOf(sweep, job)),
        { signal, tell: progressOf(jobs.length, onProgress), take },
      )
    } finally {
      const done = runs.filter((run) => run !== undefined)
      const idlenessOf = (settings: Settings): Idleness | null => idleness.get(settingsText(settings)) ?? null
      const report = { planned: jobs.length, runs: done, objectives: sweep.objectives, idlenessOf }
      if (done.length > 0)
        await store.writeFile(id, REPORT, sweepJson(sweepReport(report) satisfies SweepReportBody))
    }
    signal.throwIfAborted()
  }
}

interface RunningAll {
  readonly signal: AbortSignal
  readonly tell: (index: number, fraction: number) => void
  readonly take: (index: number, answer: RunAnswer) => Promise<void>
}

/** Runs a few processes at a time. The first failure, or the signal, ends all of them. */
async function runAll(jobs: readonly RunJob[], { signal, tell, take }: RunningAll): Promise<void> {
  const failure = new AbortController()
  const stop = AbortSignal.any([signal, failure.signal])
  let next = 0
  const takeJobs = async (): Promise<void> => {
    const process = new JobProcess<RunJob, RunAnswer>(workerUrl('simulations/jobs/run-worker'), {
      heapMib: LIMITS.heapMib,
    })
    const end = (): void => void process.end()
    stop.addEventListener('abort', end, { once: true })
    try {
      while (next < jobs.length && !stop.aborted) {
        const index = next++
        await take(index, await process.ask(jobs[index] as RunJob, (fraction) => tell(index, fraction)))
        tell(index, 1)
      }
    } catch (error) {
      failure.abort()
      throw error
    } finally {
      stop.removeEventListener('abort', end)
      await process.end()
    }
  }
  await Promise.all(Array.from({ length: Math.min(SWEEP_PROCESSES, jobs.length) }, takeJobs))
}

/** Later runs are stored without it when the first ones have used the whole limit. */
function keeperOf(id: string, store: RecordStore, what: 'residency' | 'series', maxBytes: number) {
  let characters = 0
  return async ({ overcommitPercent, seed, settings }: SweepJob, kept: object): Promise<void> => {
    const text = JSON.stringify(kept)
    characters += text.length
    if (characters > maxBytes) return
    await store.writeFile(
      id,
      runFile(what, { overcommitPercent, seed, settings: settingsText(settings) }),
      text,
    )
  }
}

/** The first run of each combination of the other fields also measures the idleness of its workload. */
function jobOf(
  { source, untilMs, grid }: SweepWork,
  { overcommitPercent, settings, seed }: SweepJob,
): RunJob {
  const asksIdleness = overcommitPercent === grid.percentages[0] && seed === grid.seeds[0]
  const seriesRows = LIMITS.sweptSeriesRows
  return {
    source,
    overrides: overridesOf(settings),
    asksIdleness,
    seriesRows,
    choices: { seed, untilMs, overcommitPercent },
  }
}
