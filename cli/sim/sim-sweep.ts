/** `headroom sim sweep FILE`. */
import { availableParallelism } from 'node:os'
import { DEFAULT_OBJECTIVES } from '../../simulator/experiment/advisor/objective.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { settingsText, sweepRunOf } from '../../simulator/experiment/sweep/sweep.ts'
import type { SweepJob } from '../../simulator/experiment/sweep/sweep.ts'
import type { SweepRequest } from '../../simulator/experiment/sweep/sweep-grid.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { packageCommit, packageVersion } from '../../services/package-info.ts'
import { withProgress } from '../output/progress.ts'
import type { OnProgress } from '../output/progress.ts'
import type { OutputOptions } from './run-report.ts'
import { onInterrupt } from '../command/interrupts.ts'
import type { SweepAnswer, SweepRunStore, SweepTask } from '../../services/sweep/sweep-run.ts'
import { findRun, openSweepFolder } from '../../services/sweep/run-store.ts'
import { planSweep } from '../../services/sweep/sweep-plan.ts'
import type { SweepPlan } from '../../services/sweep/sweep-plan.ts'
import { printSweep, reportOn, writeSweep } from '../../services/sweep/write-sweep.ts'
import { runInWorkers } from '../../services/workers/worker-pool.ts'
import { workerUrl } from '../../services/workers/worker-url.ts'

export interface SimSweepOptions extends OutputOptions, SweepRequest {
  readonly objective?: readonly Objective[]
  readonly jobs?: number
  /** False: journal.jsonl is not kept. */
  readonly journal: boolean
  /** A broker: `headroom sim worker` on any machines makes the runs. */
  readonly workers?: string
  /** Silence after which such a worker counts as lost. */
  readonly redeliver: DurationMs
}

export async function simSweep(file: string, options: SimSweepOptions): Promise<number> {
  const plan = await planSweep(file, options)
  const { out } = options
  const folder = out === undefined ? null : openSweepFolder(out)
  try {
    const store =
      out === undefined ? null : { folder: out, commit: packageCommit(), hasJournal: options.journal }
    const answers = new Map<number, SweepAnswer>()
    if (store !== null) takeDone(plan, store, answers)
    const stopped = await runRest(file, plan, store, options, answers)
    return await finish(plan, answers, options, stopped)
  } finally {
    folder?.close()
  }
}

/** Takes the intact results of an earlier sweep into the same folder. */
function takeDone(plan: SweepPlan, store: SweepRunStore, answers: Map<number, SweepAnswer>): void {
  for (const [index, job] of plan.jobs.entries()) {
    const done = findRun(store.folder, { ...plan.pointOf(job).input.identity, ...store, job })
    if (done !== null) answers.set(index, { ...done, run: sweepRunOf(job, done.result) })
  }
  if (answers.size > 0)
    process.stderr.write(`${answers.size} of ${plan.jobs.length} runs already exist in ${store.folder}\n`)
}

/**
 * Makes the missing runs.
 * @returns the exit code of the signal that stopped it, or null
 */
async function runRest(
  file: string,
  plan: SweepPlan,
  store: SweepRunStore | null,
  options: SimSweepOptions,
  answers: Map<number, SweepAnswer>,
): Promise<number | null> {
  const rest = [...plan.jobs.keys()].filter((index) => !answers.has(index))
  if (rest.length === 0) return null
  const stop = new AbortController()
  const interrupts = onInterrupt(() => stop.abort())
  const made: Rest = {
    file,
    plan,
    store,
    indexes: rest,
    signal: stop.signal,
    onAnswer: (answer, index) => void answers.set(index, answer),
  }
  try {
    await withProgress(`${plan.name}, ${rest.length} runs`, (onProgress) =>
      options.workers === undefined
        ? inProcesses(made, options, onProgress)
        : overBroker(made, options.workers, options, onProgress),
    )
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    interrupts.end()
  }
  return stop.signal.aborted ? interrupts.exitCode : null
}

interface Rest {
  readonly file: string
  readonly plan: SweepPlan
  readonly store: SweepRunStore | null
  /** Indexes of the plan's jobs. */
  readonly indexes: readonly number[]
  readonly signal: AbortSignal
  readonly onAnswer: (answer: SweepAnswer, index: number) => void
}

async function inProcesses(
  { plan, store, indexes, signal, onAnswer }: Rest,
  { jobs }: SimSweepOptions,
  onProgress: OnProgress,
): Promise<void> {
  const tasks = indexes.map((index): SweepTask => {
    const job = plan.jobs[index] as SweepJob
    return { ...plan.pointOf(job).input, job, store }
  })
  await runInWorkers<SweepTask, SweepAnswer>(workerUrl('sweep/sweep-worker'), tasks, {
    processes: jobs ?? availableParallelism(),
    onProgress,
    onAnswer: (answer, i) => onAnswer(answer, indexes[i] as number),
    signal,
  })
}

async function overBroker(
  rest: Rest,
  url: string,
  { redeliver }: SimSweepOptions,
  onProgress: OnProgress,
): Promise<void> {
  const { runRemotely } = await import('../../services/sweep/nats/remote-sweep.ts')
  let done = 0
  await runRemotely({
    ...rest,
    url,
    build: { version: packageVersion(), commit: packageCommit() },
    silentMs: redeliver,
    tell: (line) => void process.stderr.write(`${line}\n`),
    onAnswer: (answer, index) => {
      rest.onAnswer(answer, index)
      done += 1
      onProgress(done / rest.indexes.length)
    },
  })
}

async function finish(
  plan: SweepPlan,
  byIndex: ReadonlyMap<number, SweepAnswer>,
  { out, objective = DEFAULT_OBJECTIVES, json = false }: SimSweepOptions,
  stopped: number | null,
): Promise<number> {
  const answers = [...byIndex].sort(([a], [b]) => a - b).map(([, answer]) => answer)
  const count = `${answers.length} of ${plan.jobs.length} runs`
  if (stopped !== null && out !== undefined) {
    process.stderr.write(`stopped: ${count} are done and kept in ${out}; repeat the command to continue\n`)
    return stopped
  }
  if (stopped !== null)
    process.stderr.write(`stopped: ${count} are done; with --out FOLDER a sweep can be continued\n`)
  if (answers.length > 0) {
    const report = await reportOn(plan, answers, objective)
    const timings = answers.map(({ timing }) => timing)
    if (out !== undefined) writeSweep(out, plan.name, report, timings)
    printSweep(report, timings, json)
  }
  if (stopped !== null) return stopped
  const faults = answers.flatMap(({ run, operatorFaults }) =>
    operatorFaults.map(
      (fault) =>
        `${[`${run.overcommit_percent}%`, settingsText(run.settings)].filter(Boolean).join(', ')}, ` +
        `seed ${run.seed}: ${fault}`,
    ),
  )
  for (const fault of faults) process.stderr.write(`${fault}\n`)
  return faults.length === 0 ? EXIT_OK : EXIT_FAILED
}
