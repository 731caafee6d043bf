/** `headroom sim worker`: makes runs of whatever sweeps lie on a broker, until it is stopped. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, existsSync, writeFileSync } from 'node:fs'
import { availableParallelism, hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { overridesOf } from '../../simulator/sweep.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK } from '../exit-codes.ts'
import { packageCommit, packageVersion } from '../package-info.ts'
import { readRunInput } from './run-input.ts'
import { onInterrupt } from '../run/interrupts.ts'
import type { SweepAnswer, SweepTask } from './sweep-run.ts'
import { getBlob, putBlob } from '../sweep/nats/blobs.ts'
import type { BlobRef } from '../sweep/nats/blobs.ts'
import { type Delivery, JetStream } from '../sweep/nats/jetstream.ts'
import { connectForSweep } from '../sweep/nats/sweep-connection.ts'
import { FORMAT, JOBS, prepareBroker, resultSubject, WORKERS } from '../sweep/nats/sweep-subjects.ts'
import type { BuildIdentity, JobMessage, PointBlob, ResultMessage } from '../sweep/nats/sweep-subjects.ts'
import { filesOf, runFolderOf } from '../sweep/run-store.ts'
import { JobProcess } from '../workers/job-process.ts'
import { workerUrl } from '../workers/worker-url.ts'

export interface SimWorkerOptions {
  readonly nats?: string
  readonly jobs?: number
}

const DEFAULT_SILENT_MS = 30_000
/** So long one request for work waits; then the next. */
const ASK_MS = 2_000
const RETRY_MS = 500
/** A run that was given out so often and never came back takes its worker with it. */
const MAX_DELIVERIES = 5
/** A job that this worker may not do waits so long for another. */
const GIVE_BACK_MS = 2_000

export async function simWorker({ nats, jobs }: SimWorkerOptions): Promise<number> {
  const connection = await connectForSweep('--nats', nats, `headroom worker ${hostname()}`)
  const folder = mkdtempSync(join(tmpdir(), 'headroom-worker-'))
  const stop = new AbortController()
  const interrupts = onInterrupt(() => stop.abort())
  try {
    const stream = new JetStream(connection)
    await prepareBroker(stream, DEFAULT_SILENT_MS)
    const build = { version: packageVersion(), commit: packageCommit() }
    const runs = jobs ?? availableParallelism()
    process.stderr.write(`worker: headroom ${nameOf(build)}, ${runs} runs at a time\n`)
    await Promise.all(Array.from({ length: runs }, () => serve({ stream, folder, build, signal: stop.signal })))
    return EXIT_OK
  } finally {
    stop.abort()
    interrupts.end()
    await connection.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Bench {
  readonly stream: JetStream
  /** Scratch, for traces and for the files of a run until they are sent. */
  readonly folder: string
  readonly build: BuildIdentity
  readonly signal: AbortSignal
}

type Maker = JobProcess<SweepTask, SweepAnswer>

/** One run at a time, in a process of its own, so that this one stays awake to say that it is at work. */
async function serve(bench: Bench): Promise<void> {
  const maker: Maker = new JobProcess(workerUrl('sim/sweep-worker'))
  try {
    while (!bench.signal.aborted) {
      const delivery = await nextJob(bench)
      if (delivery !== null) await work(bench, maker, delivery)
    }
  } finally {
    await maker.end()
  }
}

/** Null: there is none now, or the broker is away. */
async function nextJob({ stream, signal }: Bench): Promise<Delivery | null> {
  try {
    return await stream.next(JOBS, WORKERS, ASK_MS)
  } catch {
    await wait(RETRY_MS, undefined, { signal }).catch(() => undefined)
    return null
  }
}

/** The job is acknowledged when its result is on the broker's disk, and not before. */
async function work(bench: Bench, maker: Maker, delivery: Delivery): Promise<void> {
  const job = JSON.parse(Buffer.from(delivery.data).toString('utf8')) as JobMessage
  const refusal = refusalOf(job, bench.build)
  if (refusal !== null) {
    await delivery.giveBack(GIVE_BACK_MS)
    throw new CommandFailure(refusal, EXIT_CONFLICT)
  }
  const alive = setInterval(delivery.working, Math.max(100, Math.floor(job.silent_ms / 3)))
  try {
    const result = await outcomeOf(bench, maker, job, delivery.deliveries)
    if (result === null) return
    await bench.stream.publish(resultSubject(job.sweep, job.run), JSON.stringify(result))
    await delivery.ack()
    if (result.kind === 'done') process.stderr.write(`worker: ${job.sweep} ${job.run} took ${result.timing.wall_s.toFixed(1)} s\n`)
  } catch (error) {
    // The broker went away in the middle: it will give the job out again.
    process.stderr.write(`worker: ${job.sweep} ${job.run}: ${(error as Error).message}\n`)
  } finally {
    clearInterval(alive)
  }
}

/** Other code may come to other bytes. */
function refusalOf(job: JobMessage, build: BuildIdentity): string | null {
  const isSame = job.version === build.version && (job.commit === null || build.commit === null || job.commit === build.commit)
  if (isSame && job.format === FORMAT) return null
  return `this worker is headroom ${nameOf(build)}, the sweep ${job.sweep} was started by ${nameOf(job)}: their results may differ, so it takes no part; run the same version on both`
}

function nameOf({ version, commit }: BuildIdentity): string {
  return commit === null ? version : `${version} (${commit.slice(0, 12)})`
}

/** Null: stopped in the middle. A run that cannot be made is an outcome, too. */
async function outcomeOf(bench: Bench, maker: Maker, job: JobMessage, deliveries: number): Promise<ResultMessage | null> {
  const head = { format: FORMAT, run: job.run } as const
  if (deliveries > MAX_DELIVERIES) {
    const message = `run ${job.run} was given to ${MAX_DELIVERIES} workers, and none of them came back with it`
    return { ...head, kind: 'failed', name: 'CommandFailure', message }
  }
  const traces = new Map<string, string>()
  const scratch = mkdtempSync(join(bench.folder, `${job.sweep}-${job.run}-`))
  try {
    const task = await taskOf(bench, job, scratch, traces)
    const answer = await Promise.race([maker.ask(task), aborted(bench.signal)])
    if (answer === null) return null
    const { overcommit_percent: _percent, settings: _settings, ...result } = answer.run
    const files = await sendFiles(bench, job, task, scratch)
    return { ...head, kind: 'done', result, timing: answer.timing, operator_faults: answer.operatorFaults, files }
  } catch (error) {
    if (!(error instanceof Error) || isTransportError(error)) throw error
    return { ...head, kind: 'failed', name: error.name, message: inTheirWords(error.message, traces) }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const TRANSPORT_ERRORS: ReadonlySet<string> = new Set([
  'TimeoutError',
  'RequestError',
  'ConnectionError',
  'ClosedConnectionError',
  'NoRespondersError',
  'JetStreamError',
])

function isTransportError({ name }: Error): boolean {
  return TRANSPORT_ERRORS.has(name)
}

/** @param nameOfTrace learns what the files here are called where the sweep was started */
async function taskOf(bench: Bench, job: JobMessage, scratch: string, nameOfTrace: Map<string, string>): Promise<SweepTask> {
  const point = JSON.parse((await getBlob(bench.stream, job.sweep, job.point)).toString('utf8')) as PointBlob
  const traces: Record<string, string> = {}
  for (const [name, ref] of Object.entries(point.traces)) {
    const path = await traceFile(bench, job.sweep, ref)
    traces[name] = path
    nameOfTrace.set(path, name)
  }
  const source = { text: point.text, baseDir: point.base_dir, file: point.file, traces }
  const input = await readRunInput(source, overridesOf(point.settings))
  if (JSON.stringify(input.identity) !== JSON.stringify(point.identity))
    throw new Error(`run ${job.run}: what came over the broker is not what was sent`)
  const store = job.files === 'none' ? null : { folder: scratch, commit: bench.build.commit, hasJournal: job.files === 'all' }
  return { ...input, job: { overcommitPercent: job.overcommit_percent, settings: point.settings, seed: job.seed }, store }
}

/** A trace is fetched once for all runs. Those that fetch it at the same time write the same bytes. */
async function traceFile({ stream, folder }: Bench, sweep: string, ref: PointBlob['traces'][string]): Promise<string> {
  const traces = join(folder, 'traces')
  const path = join(traces, `${ref.sha256}.trace.jsonl${ref.suffix}`)
  if (existsSync(path)) return path
  mkdirSync(traces, { recursive: true })
  const partial = mkdtempSync(join(traces, 'partial-'))
  writeFileSync(join(partial, 'trace'), await getBlob(stream, sweep, ref))
  renameSync(join(partial, 'trace'), path)
  rmSync(partial, { recursive: true })
  return path
}

async function sendFiles(
  { stream }: Bench,
  job: JobMessage,
  { store, job: run }: SweepTask,
  scratch: string,
): Promise<Record<string, BlobRef>> {
  const files: Record<string, BlobRef> = {}
  if (store === null) return files
  for (const name of filesOf(store)) files[name] = await putBlob(stream, job.sweep, readFileSync(join(runFolderOf(scratch, run), name)))
  return files
}

function inTheirWords(message: string, nameOfTrace: ReadonlyMap<string, string>): string {
  let text = message
  for (const [path, name] of nameOfTrace) text = text.replaceAll(path, name)
  return text
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null)
    else signal.addEventListener('abort', () => resolve(null), { once: true })
  })
}
