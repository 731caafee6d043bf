/** `headroom sim worker`: makes runs of whatever sweeps lie on a broker, until it is stopped. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { overridesOf } from '../../simulator/sweep.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK } from '../exit-codes.ts'
import { packageCommit, packageVersion } from '../package-info.ts'
import { readRunInput } from './run-input.ts'
import { onInterrupt } from '../run/interrupts.ts'
import type { SweepAnswer, SweepTask } from './sweep-run.ts'
import type { BlobRef } from '../sweep/nats/blob-ref.ts'
import { getBlob, putBlob } from '../sweep/nats/blobs.ts'
import { putAway } from '../sweep/nats/dead-letters.ts'
import { type Delivery, JetStream, JetStreamError } from '../sweep/nats/jetstream.ts'
import { connectForSweep } from '../sweep/nats/sweep-connection.ts'
import { FORMAT, readJob, readPoint } from '../sweep/nats/sweep-messages.ts'
import type { BuildIdentity, JobMessage, PointBlob, ResultMessage } from '../sweep/nats/sweep-messages.ts'
import { JOBS, resultSubject, WORKERS } from '../sweep/nats/sweep-subjects.ts'
import { filesOf, runFolderOf } from '../sweep/run-store.ts'
import { JobProcess } from '../workers/job-process.ts'
import { workerUrl } from '../workers/worker-url.ts'
import { TraceShelf, type HeldTrace } from './trace-shelf.ts'

export interface SimWorkerOptions {
  readonly nats?: string
  readonly jobs?: number
}

/** So long one request for work waits; then the next. */
const ASK_MS = 2_000
const RETRY_MS = 500
/** A run that was given out so often and never came back takes its worker with it. */
const MAX_DELIVERIES = 5
/** A job that this worker may not do waits so long for another. */
const GIVE_BACK_MS = 2_000
/** The first sweep on a broker creates its queue. */
const NO_QUEUE_MS = 2_000

export async function simWorker({ nats, jobs }: SimWorkerOptions): Promise<number> {
  const connection = await connectForSweep('--nats', nats, `headroom worker ${hostname()}`)
  const folder = mkdtempSync(join(tmpdir(), 'headroom-worker-'))
  const stop = new AbortController()
  const interrupts = onInterrupt(() => stop.abort())
  try {
    const stream = new JetStream(connection)
    const build = { version: packageVersion(), commit: packageCommit() }
    const runs = jobs ?? availableParallelism()
    process.stderr.write(`worker: headroom ${nameOf(build)}, ${runs} runs at a time\n`)
    const bench = {
      stream,
      folder,
      build,
      signal: stop.signal,
      traces: new TraceShelf(join(folder, 'traces')),
    }
    await untilThereIsAQueue(bench)
    await Promise.all(Array.from({ length: runs }, () => serve(bench)))
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
  /** Scratch, for the files of a run until they are sent. */
  readonly folder: string
  readonly traces: TraceShelf
  readonly build: BuildIdentity
  readonly signal: AbortSignal
}

type Maker = JobProcess<SweepTask, SweepAnswer>

/** One run at a time, in a process of its own, so that this one stays awake to say that it is at work. */
async function serve(bench: Bench): Promise<void> {
  let maker = newMaker()
  try {
    while (!bench.signal.aborted) {
      const delivery = await nextJob(bench)
      // A run that took its process with it must not take the runs after it.
      if (maker.isEnded) maker = newMaker()
      if (delivery !== null) await work(bench, maker, delivery)
    }
  } finally {
    await maker.end()
  }
}

function newMaker(): Maker {
  return new JobProcess(workerUrl('sim/sweep-worker'))
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

/**
 * The worker has no right to make the queue; who starts a sweep makes it. Throws JetStreamError for a broker
 * without JetStream.
 */
async function untilThereIsAQueue({ stream, signal }: Bench): Promise<void> {
  let isTold = false
  while (!signal.aborted) {
    try {
      return await stream.requireConsumer(JOBS, WORKERS)
    } catch (error) {
      if (error instanceof JetStreamError && error.code !== 404) throw error
      if (!isTold)
        process.stderr.write('worker: no sweep was ever started on this broker; waiting for the first\n')
      isTold = true
      await wait(NO_QUEUE_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** The job is acknowledged when its result is on the broker's disk, and not before. */
async function work(bench: Bench, maker: Maker, delivery: Delivery): Promise<void> {
  const read = readJob(delivery.data)
  if (!read.ok) return noJob(bench, delivery, read.why)
  const job = read.value
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
    const what =
      result.kind === 'done'
        ? `took ${result.timing.wall_s.toFixed(1)} s`
        : `failed: ${firstLineOf(result.message)}`
    process.stderr.write(`worker: ${job.sweep} ${job.run} ${what}\n`)
  } catch (error) {
    // The broker went away in the middle: it will give the job out again.
    process.stderr.write(`worker: ${job.sweep} ${job.run}: ${(error as Error).message}\n`)
  } finally {
    clearInterval(alive)
  }
}

/** No message ends the worker. The broker delivers again what it does not accept now. */
async function noJob({ stream }: Bench, delivery: Delivery, why: string): Promise<void> {
  process.stderr.write(
    `worker: ${delivery.subject}: a message that is no job (${why}): moved to headroom.sweep.dead\n`,
  )
  await putAway(stream, delivery, why).catch(async (error: unknown) => {
    process.stderr.write(`worker: ${delivery.subject}: it could not be moved: ${(error as Error).message}\n`)
    await delivery.giveBack(GIVE_BACK_MS).catch(() => undefined)
  })
}

/** Other code may come to other bytes. */
function refusalOf(job: JobMessage, build: BuildIdentity): string | null {
  const isSame =
    job.version === build.version &&
    (job.commit === null || build.commit === null || job.commit === build.commit)
  if (isSame && job.format === FORMAT) return null
  return `this worker is headroom ${nameOf(build)}, the sweep ${job.sweep} was started by ${nameOf(job)}: their results may differ, so it takes no part; run the same version on both`
}

function nameOf({ version, commit }: BuildIdentity): string {
  return commit === null ? version : `${version} (${commit.slice(0, 12)})`
}

/** Null: stopped in the middle. A run that cannot be made is an outcome, too. */
async function outcomeOf(
  bench: Bench,
  maker: Maker,
  job: JobMessage,
  deliveries: number,
): Promise<ResultMessage | null> {
  const head = { format: FORMAT, run: job.run } as const
  if (deliveries > MAX_DELIVERIES) {
    const message = `run ${job.run} was given to ${MAX_DELIVERIES} workers, and none of them came back with it`
    return { ...head, kind: 'failed', name: 'CommandFailure', message }
  }
  const traces = new Map<string, HeldTrace>()
  const scratch = mkdtempSync(join(bench.folder, 'run-'))
  try {
    const task = await taskOf(bench, job, scratch, traces)
    const answer = await Promise.race([maker.ask(task), aborted(bench.signal)])
    if (answer === null) return null
    const { overcommit_percent: _percent, settings: _settings, ...result } = answer.run
    const files = await sendFiles(bench, job, task, scratch)
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
    return { ...head, kind: 'failed', name: error.name, message: inTheirWords(error.message, traces) }
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

/**
 * @param held learns by name, as it is where the sweep was started, which traces it holds: the caller
 *   releases them
 */
async function taskOf(
  bench: Bench,
  job: JobMessage,
  scratch: string,
  held: Map<string, HeldTrace>,
): Promise<SweepTask> {
  const point = await pointOf(bench, job)
  for (const [name, ref] of Object.entries(point.traces)) {
    held.set(name, await bench.traces.hold(ref, () => getBlob(bench.stream, job.sweep, 'blob', ref)))
  }
  const traces = Object.fromEntries([...held].map(([name, { path }]) => [name, path]))
  const source = { text: point.text, baseDir: point.base_dir, file: point.file, traces }
  const input = await readRunInput(source, overridesOf(point.settings))
  if (JSON.stringify(input.identity) !== JSON.stringify(point.identity))
    throw new Error(`run ${job.run}: what came over the broker is not what was sent`)
  const store =
    job.files === 'none'
      ? null
      : { folder: scratch, commit: bench.build.commit, hasJournal: job.files === 'all' }
  return {
    ...input,
    job: { overcommitPercent: job.overcommit_percent, settings: point.settings, seed: job.seed },
    store,
  }
}

async function pointOf({ stream }: Bench, { sweep, run, point: ref }: JobMessage): Promise<PointBlob> {
  const read = readPoint(await getBlob(stream, sweep, 'blob', ref))
  if (!read.ok) throw new Error(`run ${run}: its scenario cannot be taken: ${read.why}`)
  return read.value
}

async function sendFiles(
  { stream }: Bench,
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

function inTheirWords(message: string, traces: ReadonlyMap<string, HeldTrace>): string {
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
