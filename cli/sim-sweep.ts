/** `headroom sim sweep FILE`. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { formatSweep, sweepCsv } from '../simulator/report/sweep-table.ts'
import type { Scenario } from '../simulator/scenario/scenario.ts'
import { summarize, sweepJobs } from '../simulator/sweep.ts'
import { EXIT_FAILED, EXIT_OK, UsageError } from './exit-codes.ts'
import { withProgress } from './progress.ts'
import type { OnProgress } from './progress.ts'
import { makeFolder, writeJson } from './run-folder.ts'
import { readRunInput } from './run-input.ts'
import type { OutputOptions } from './run-report.ts'
import { processTiming } from './stopwatch.ts'
import { runSweepTask } from './sweep-run.ts'
import type { SweepAnswer, SweepTask } from './sweep-run.ts'
import { runInWorkers } from './worker-pool.ts'
import { workerUrl } from './worker-url.ts'

export interface SimSweepOptions extends OutputOptions {
  readonly overcommit?: readonly number[]
  readonly seeds?: readonly number[]
  readonly jobs?: number
}

const MAX_RUNS = 100_000

export async function simSweep(file: string, options: SimSweepOptions): Promise<number> {
  const { scenario, identity, expectedTasks } = await readRunInput(file)
  const jobs = sweepJobs(percentagesOf(scenario, options), options.seeds ?? scenario.sweep?.seeds ?? [scenario.seed])
  if (jobs.length > MAX_RUNS) throw new UsageError(`--overcommit and --seeds make ${jobs.length} runs; allowed are ${MAX_RUNS}`)
  if (options.out !== undefined) makeFolder(options.out)
  const tasks = jobs.map((job): SweepTask => ({ scenario, identity, expectedTasks, job }))
  const threads = options.jobs ?? availableParallelism()
  const answers = await withProgress(`${scenario.name}, ${tasks.length} runs`, (onProgress) => runAll(tasks, threads, onProgress))
  report(answers, options)
  const faults = answers.flatMap(({ run, operatorFaults }) =>
    operatorFaults.map((fault) => `${run.overcommit_percent} %, seed ${run.seed}: ${fault}`),
  )
  for (const fault of faults) process.stderr.write(`${fault}\n`)
  return faults.length === 0 ? EXIT_OK : EXIT_FAILED
}

/** The option, or what the scenario itself wants to be swept. */
function percentagesOf({ sweep }: Scenario, { overcommit }: SimSweepOptions): readonly number[] {
  if (overcommit !== undefined) return overcommit
  const others = sweep?.fields.filter(({ field }) => field !== 'default_vram_overcommit_percent') ?? []
  if (others.length > 0)
    throw new UsageError(`sweep.config.${others[0]?.field}: only the overcommit percentage can be swept yet: add --overcommit A..B:STEP`)
  const values = sweep?.fields[0]?.values ?? []
  if (values.length === 0) throw new UsageError('which percentages? Add --overcommit A..B:STEP, or a sweep to the scenario')
  return values.filter((value) => typeof value === 'number')
}

async function runAll(tasks: readonly SweepTask[], threads: number, onProgress: OnProgress): Promise<SweepAnswer[]> {
  if (threads > 1 && tasks.length > 1) {
    return runInWorkers<SweepTask, SweepAnswer>(workerUrl('sweep-worker'), tasks, { threads, onProgress })
  }
  const answers: SweepAnswer[] = []
  for (const task of tasks) answers.push(await runSweepTask(task, (fraction) => onProgress((answers.length + fraction) / tasks.length)))
  return answers
}

function report(answers: readonly SweepAnswer[], { json, out }: SimSweepOptions): void {
  const runs = answers.map(({ run }) => run)
  const summary = summarize(runs)
  if (out !== undefined) {
    writeFileSync(join(out, 'summary.csv'), sweepCsv(summary))
    writeJson(join(out, 'timing.json'), { ...processTiming(null), runs: answers.map(({ timing }) => timing) })
    writeJson(join(out, 'result.json'), { runs, summary })
  }
  if (json === true)
    process.stdout.write(`${JSON.stringify({ runs: answers.map(({ run, timing }) => ({ ...run, timing })), summary }, null, 2)}\n`)
  else process.stdout.write(formatSweep(summary))
}
