/** A sweep over REST: the same scenario at several percentages with the same seeds, a few processes at a time. What was done is kept, however it ends. */
import type { RunResidency } from '../../controller/ports/simulation.ts'
import type { SweepReportBody } from '../../controller/api/schema/sweep-report.ts'
import { advise } from '../../simulator/plan/advisor.ts'
import type { Objective } from '../../simulator/plan/objective.ts'
import { adviceNotes, adviceSentence } from '../../simulator/report/advice-text.ts'
import type { ScenarioSource } from '../../simulator/scenario/load.ts'
import { summarize, sweepJobs, sweepRunOf, type SweepJob, type SweepRun } from '../../simulator/sweep.ts'
import { JobProcess } from '../job-process.ts'
import { progressOf } from '../worker-pool.ts'
import { workerUrl } from '../worker-url.ts'
import { LIMITS, SWEEP_PROCESSES } from './limits.ts'
import type { Work } from './queue.ts'
import { REPORT, residencyFile, type RecordStore } from './records.ts'
import type { RunAnswer, RunJob } from './run-job.ts'

export interface SweepWork {
  readonly source: ScenarioSource
  readonly untilMs: number | null
  readonly percentages: readonly number[]
  readonly seeds: readonly number[]
  readonly objectives: readonly Objective[]
}

export function sweepWork(sweep: SweepWork, id: string, store: RecordStore): Work {
  return async ({ signal, onProgress }) => {
    const jobs = sweepJobs(sweep.percentages, sweep.seeds)
    const runs = new Array<SweepRun | undefined>(jobs.length)
    const tell = progressOf(jobs.length, onProgress)
    let keptCharacters = 0
    const keep = async ({ overcommitPercent, seed }: SweepJob, residency: RunResidency): Promise<void> => {
      const text = JSON.stringify(residency)
      keptCharacters += text.length
      if (keptCharacters <= LIMITS.sweptResidencyBytes) await store.writeFile(id, residencyFile({ overcommitPercent, seed }), text)
    }
    let next = 0
    const takeJobs = async (): Promise<void> => {
      const process = new JobProcess<RunJob, RunAnswer>(workerUrl('simulations/run-worker'), { heapMib: LIMITS.heapMib })
      const end = (): void => void process.end()
      signal.addEventListener('abort', end, { once: true })
      try {
        while (next < jobs.length && !signal.aborted) {
          const index = next++
          const job = jobs[index] as SweepJob
          const { result, residency } = await process.ask(jobOf(sweep, job), (fraction) => tell(index, fraction))
          runs[index] = sweepRunOf(job, result)
          await keep(job, residency)
          tell(index, 1)
        }
      } finally {
        signal.removeEventListener('abort', end)
        await process.end()
      }
    }
    try {
      await Promise.all(Array.from({ length: Math.min(SWEEP_PROCESSES, jobs.length) }, takeJobs))
    } finally {
      const done = runs.filter((run) => run !== undefined)
      if (done.length > 0) await store.writeFile(id, REPORT, JSON.stringify(reportOf(done, jobs.length, sweep.objectives)))
    }
    signal.throwIfAborted()
  }
}

function jobOf({ source, untilMs }: SweepWork, { overcommitPercent, seed }: SweepJob): RunJob {
  return { source, choices: { seed, untilMs, overcommitPercent } }
}

/** As `headroom sim sweep --json` has it, with the advice in words. */
function reportOf(runs: readonly SweepRun[], planned: number, objectives: readonly Objective[]): SweepReportBody {
  const advice = advise({ runs, objectives, idleness: null })
  return {
    runs_done: runs.length,
    runs_planned: planned,
    summary: summarize(runs),
    advice: { ...advice, text: [adviceSentence(advice), ...adviceNotes(advice)].join('\n') },
    runs,
  }
}
