/** `headroom sim worker`: makes runs of the sweeps on a broker, until it is stopped. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { overridesOf } from '../../simulator/experiment/sweep/sweep.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK } from '../../services/exit-codes.ts'
import { packageCommit, packageVersion } from '../../services/package-info.ts'
import { readRunInput } from '../../services/runs/run-input.ts'
import { onInterrupt } from '../command/interrupts.ts'
import type { SweepAnswer, SweepTask } from '../../services/sweep/sweep-run.ts'
import { getBlob, putBlob, moveToDeadLetters, type BlobRef } from '../../services/sweep/nats/blobs.ts'
import { type Delivery, JetStream, JetStreamError } from '../../services/sweep/nats/jetstream.ts'
import { connectForSweep } from '../../services/sweep/nats/sweep-connection.ts'
import { FORMAT, readJob, readPoint } from '../../services/sweep/nats/sweep-messages.ts'
import type {
  BuildIdentity,
  JobMessage,
  PointBlob,
  ResultMessage,
} from '../../services/sweep/nats/sweep-messages.ts'
import { JOBS, resultSubject, WORKERS } from '../../services/sweep/nats/sweep-subjects.ts'
import { filesOf, runFolderOf } from '../../services/sweep/run-store.ts'
import { JobProcess } from '../../services/workers/job-process.ts'
import { workerUrl } from '../../services/workers/worker-url.ts'
import { TraceCache, type HeldTrace } from '../../services/sweep/nats/trace-cache.ts'

export interface SimWorkerOptions {
  readonly nats?: string
  readonly jobs?: number
}

/** Duration of one request for work. */
const POLL_MS = 2_000
const RETRY_MS = 500
/** A run that was delivered this often without a result ends its workers. */
const MAX_DELIVERIES = 5
/** Delay before a job that this worker may not do is delivered to another. */
const REDELIVER_AFTER_MS = 2_000
/** The first sweep on a broker creates its queue. */
const QUEUE_RETRY_MS = 2_000

export async function simWorker({ nats, jobs }: SimWorkerOptions): Promise<number> {
  const connection = await connectForSweep('--nats', nats, `headroom worker ${hostname()}`)
  const folder = mkdtempSync(join(tmpdir(), 'headroom-worker-'))
  const stop = new AbortController()
  const interrupts = onInterrupt(() => stop.abort())
  try {
    const stream = new JetStream(connection)
    const build = { version: packageVersion(), commit: packageCommit() }
    const runs = jobs ?? availableParallelism()
    process.stderr.write(`worker: headroom ${nameOf(build)}, ${runs} concurrent runs\n`)
    const context = {
      stream,
      folder,
      build,
      signal: stop.signal,
      traces: new TraceCache(join(folder, 'traces')),
    }
    await waitForQueue(context)
    await Promise.all(Array.from({ length: runs }, () => serve(context)))
    return EXIT_OK
  } finally {
    stop.abort()
    interrupts.end()
    await connection.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface WorkerContext {
  readonly stream: JetStream
  /** Temporary folder for the files of a run until they are sent. */
  readonly folder: string
  readonly traces: TraceCache
  readonly build: BuildIdentity
  readonly signal: AbortSignal
}

type JobRunner = JobProcess<SweepTask, SweepAnswer>

/** One run at a time, in its own process, so that this process can report that it is working. */
async function serve(context: WorkerContext): Promise<void> {
  let runner = newRunner()
  try {
    while (!context.signal.aborted) {
      const delivery = await nextJob(context)
      // A run that crashed its process must not affect the next runs.
      if (runner.isEnded) runner = newRunner()
      if (delivery !== null) await work(context, runner, delivery)
    }
  } finally {
    await runner.end()
  }
}

function newRunner(): JobRunner {
  return new JobProcess(workerUrl('sweep/sweep-worker'))
}

/** Null: no job now, or the broker is unavailable. */
async function nextJob({ stream, signal }: WorkerContext): Promise<Delivery | null> {
  try {
    return await stream.next(JOBS, WORKERS, POLL_MS)
  } catch {
    await wait(RETRY_MS, undefined, { signal }).catch(() => undefined)
    return null
  }
}

/**
 * The worker may not create the queue; the command that starts a sweep does. Throws JetStreamError for a
 * broker without JetStream.
 */
async function waitForQueue({ stream, signal }: WorkerContext): Promise<void> {
  let isTold = false
  while (!signal.aborted) {
    try {
      return await stream.requireConsumer(JOBS, WORKERS)
    } catch (error) {
      if (error instanceof JetStreamError && error.code !== 404) throw error
      if (!isTold)
        process.stderr.write(
          'worker: no sweep has been started on this broker yet; waiting for the first one\n',
        )
      isTold = true
      await wait(QUEUE_RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** Acknowledges the job once its result is on the broker's disk, not before. */
async function work(context: WorkerContext, runner: JobRunner, delivery: Delivery): Promise<void> {
  const read = readJob(delivery.data)
  if (!read.ok) return rejectJob(context, delivery, read.why)
  const job = read.value
  const refusal = refusalOf(job, context.build)
  if (refusal !== null) {
    await delivery.redeliver(REDELIVER_AFTER_MS)
    throw new CommandFailure(refusal, EXIT_CONFLICT)
  }
  const alive = setInterval(delivery.working, Math.max(100, Math.floor(job.silent_ms / 3)))
  try {
    const result = await outcomeOf(context, runner, job, delivery.deliveries)
    if (result === null) return
    await context.stream.publish(resultSubject(job.sweep, job.run), JSON.stringify(result))
    await delivery.ack()
    const what =
      result.kind === 'done'
        ? `took ${result.timing.wall_s.toFixed(1)} s`
        : `failed: ${firstLineOf(result.message)}`
    process.stderr.write(`worker: ${job.sweep} ${job.run} ${what}\n`)
  } catch (error) {
    // The connection broke during the run: the broker will deliver the job again.
    process.stderr.write(`worker: ${job.sweep} ${job.run}: ${(error as Error).message}\n`)
  } finally {
    clearInterval(alive)
  }
}

/** No message ends the worker. The broker delivers an unaccepted message again. */
async function rejectJob({ stream }: WorkerContext, delivery: Delivery, why: string): Promise<void> {
  process.stderr.write(`worker: ${delivery.subject}: invalid job (${why}): moved to headroom.sweep.dead\n`)
  await moveToDeadLetters(stream, delivery, why).catch(async (error: unknown) => {
    process.stderr.write(
      `worker: ${delivery.subject}: cannot move the message: ${(error as Error).message}\n`,
    )
    await delivery.redeliver(REDELIVER_AFTER_MS).catch(() => undefined)
  })
}

/** Other code may produce other bytes. */
function refusalOf(job: JobMessage, build: BuildIdentity): string | null {
  const isSame =
    job.version === build.version &&
    (job.commit === null || build.commit === null || job.commit === build.commit)
  if (isSame && job.format === FORMAT) return null
  return (
    `this worker runs headroom ${nameOf(build)}, but the sweep ${job.sweep} was started by ` +
    `headroom ${nameOf(job)}. Their results may differ, so this worker does not execute runs of the ` +
    `sweep. Use the same ` +
    'version for both.'
  )
}

function nameOf({ version, commit }: BuildIdentity): string {
  return commit === null ? version : `${version} (${commit.slice(0, 12)})`
}

/** Null: stopped during the run. A run that cannot be made is an outcome too. */
async function outcomeOf(
  context: WorkerContext,
  runner: JobRunner,
  job: JobMessage,
  deliveries: number,
): Promise<ResultMessage | null> {
  const head = { format: FORMAT, run: job.run } as const
  if (deliveries > MAX_DELIVERIES) {
    const message = `run ${job.run} was sent to ${MAX_DELIVERIES} workers, but none returned a result`
    return { ...head, kind: 'failed', name: 'CommandFailure', message }
  }
  const traces = new Map<string, HeldTrace>()
  const scratch = mkdtempSync(join(context.folder, 'run-'))
  try {
    const task = await taskOf(context, job, scratch, traces)
    const answer = await Promise.race([runner.ask(task), aborted(context.signal)])
    if (answer === null) return null
    const { overcommit_percent: _percent, settings: _settings, ...result } = answer.run
    const files = await sendFiles(context, job, task, scratch)
    return {
      ...head,
      kind: 'done',
      result,
      timing: answer.timing,
      operator_faults: answer.operatorFaults,
      files,
    }
  } catch (error) {
    if (!(error instanceof Error) || isTransportError(error)) throw error
    return { ...head, kind: 'failed', name: error.name, message: withSenderPaths(error.message, traces) }
  } finally {
    for (const { release } of traces.values()) release()
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

/** @param held collects the traces it holds, by their name at the sender; the caller releases them */
async function taskOf(
  context: WorkerContext,
  job: JobMessage,
  scratch: string,
  held: Map<string, HeldTrace>,
): Promise<SweepTask> {
  const point = await pointOf(context, job)
  for (const [name, ref] of Object.entries(point.traces)) {
    held.set(name, await context.traces.hold(ref, () => getBlob(context.stream, job.sweep, 'blob', ref)))
  }
  const traces = Object.fromEntries([...held].map(([name, { path }]) => [name, path]))
  const source = { text: point.text, baseDir: point.base_dir, file: point.file, traces }
  const input = await readRunInput(source, overridesOf(point.settings))
  if (JSON.stringify(input.identity) !== JSON.stringify(point.identity))
    throw new Error(`run ${job.run}: the received content differs from the content sent`)
  const store =
    job.files === 'none'
      ? null
      : { folder: scratch, commit: context.build.commit, hasJournal: job.files === 'all' }
  return {
    ...input,
    job: { overcommitPercent: job.overcommit_percent, settings: point.settings, seed: job.seed },
    store,
  }
}

async function pointOf(
  { stream }: WorkerContext,
  { sweep, run, point: ref }: JobMessage,
): Promise<PointBlob> {
  const read = readPoint(await getBlob(stream, sweep, 'blob', ref))
  if (!read.ok) throw new Error(`run ${run}: invalid scenario: ${read.why}`)
  return read.value
}

async function sendFiles(
  { stream }: WorkerContext,
  job: JobMessage,
  { store, job: run }: SweepTask,
  scratch: string,
): Promise<Record<string, BlobRef>> {
  const files: Record<string, BlobRef> = {}
  if (store === null) return files
  for (const name of filesOf(store))
    files[name] = await putBlob(
      stream,
      job.sweep,
      'file',
      readFileSync(join(runFolderOf(scratch, run), name)),
    )
  return files
}

function withSenderPaths(message: string, traces: ReadonlyMap<string, HeldTrace>): string {
  let text = message
  for (const [name, { path }] of traces) text = text.replaceAll(path, name)
  return text
}

function firstLineOf(message: string): string {
  return message.split('\n', 1)[0] ?? ''
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null)
    else signal.addEventListener('abort', () => resolve(null), { once: true })
  })
}
