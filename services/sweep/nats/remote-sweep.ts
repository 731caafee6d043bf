/**
 * A sweep whose runs are made by workers on any machines: `headroom sim sweep --workers URL`. Puts the runs
 * into the work queue and collects their results. Workers and this command may die at any time: the run of a
 * silent worker is given to another, and results stay on the broker until a command with the same sweep has
 * fetched them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { sweepRunOf } from '../../../simulator/experiment/sweep/sweep.ts'
import { errorOf } from '../../workers/job-process.ts'
import type { SweepAnswer, SweepRunStore } from '../sweep-run.ts'
import { cannotBeWritten } from '../../output-file.ts'
import { jsonText } from '../../runs/run-folder.ts'
import { filesOf, keepRun, partialFolder, runName, sha256 } from '../run-store.ts'
import type { SweepPlan, SweepPoint } from '../sweep-plan.ts'
import { getBlob, putBlob, type BlobRef } from './blobs.ts'
import { JetStream, JetStreamError } from './jetstream.ts'
import { connectForSweep } from './sweep-connection.ts'
import { FORMAT, readResult } from './sweep-messages.ts'
import type { BuildIdentity, JobMessage, PointBlob, ResultMessage } from './sweep-messages.ts'
import {
  DATA,
  dataOf,
  jobsOf,
  jobSubject,
  JOBS,
  prepareBroker,
  resultsOf,
  WORKERS,
} from './sweep-subjects.ts'

export interface RemoteSweep {
  readonly url: string
  /** The scenario file. */
  readonly file: string
  readonly plan: SweepPlan
  /** Indexes of the plan's jobs to make. */
  readonly indexes: readonly number[]
  readonly store: SweepRunStore | null
  readonly build: BuildIdentity
  readonly silentMs: number
  readonly onAnswer: (answer: SweepAnswer, index: number) => void
  readonly signal: AbortSignal
  /** Receives lines for the user. */
  readonly tell: (line: string) => void
}

const POLL_MS = 1_000
const RETRY_MS = 500
/** Time without a request for work before that is reported. */
const NO_WORKER_MS = 2_000

/** Resolves when every run is done, or the signal has come; rejects with the failure of a run. */
export async function runRemotely(sweep: RemoteSweep): Promise<void> {
  const connection = await connectForSweep('--workers', sweep.url, 'headroom sweep')
  try {
    const stream = new JetStream(connection)
    await prepareBroker(stream, sweep.silentMs)
    const id = idOf(sweep)
    // Jobs of an earlier command that were not started would be done twice.
    await stream.purge(JOBS, jobsOf(id))
    const waiting = new Map(
      sweep.indexes.map((index) => [runName(sweep.plan.jobs[index] as SweepPlan['jobs'][number]), index]),
    )
    await collect(stream, id, sweep, waiting, async () => putJobs(stream, id, sweep, waiting))
    await stream.purge(JOBS, jobsOf(id))
    if (waiting.size === 0) await stream.purge(DATA, dataOf(id))
  } finally {
    await connection.close()
  }
}

/** The same sweep of the same build has the same id, so that a stopped command finds finished runs. */
function idOf({ plan, store, build }: RemoteSweep): string {
  const points = plan.points.map(({ settings, input }) => [settings, input.identity])
  return sha256(JSON.stringify([FORMAT, build, points, store === null ? null : store.hasJournal])).slice(
    0,
    24,
  )
}

async function putJobs(
  stream: JetStream,
  id: string,
  sweep: RemoteSweep,
  waiting: ReadonlyMap<string, number>,
): Promise<void> {
  const points = new Map<SweepPoint, BlobRef>()
  const traces = new Map<string, BlobRef>()
  for (const [run, index] of waiting) {
    if (sweep.signal.aborted) return
    const job = sweep.plan.jobs[index] as SweepPlan['jobs'][number]
    const point = sweep.plan.pointOf(job)
    const ref = points.get(point) ?? (await putPoint(stream, id, sweep.file, point, traces))
    points.set(point, ref)
    const message: JobMessage = {
      format: FORMAT,
      ...sweep.build,
      sweep: id,
      run,
      overcommit_percent: job.overcommitPercent,
      seed: job.seed,
      point: ref,
      files: sweep.store === null ? 'none' : sweep.store.hasJournal ? 'all' : 'without_journal',
      silent_ms: sweep.silentMs,
    }
    await stream.publish(jobSubject(id, run), JSON.stringify(message))
  }
}

async function putPoint(
  stream: JetStream,
  id: string,
  file: string,
  { settings, input }: SweepPoint,
  known: Map<string, BlobRef>,
): Promise<BlobRef> {
  const baseDir = dirname(resolve(file))
  const traces: Record<string, PointBlob['traces'][string]> = {}
  for (const item of input.scenario.workload) {
    if (item.kind !== 'trace') continue
    const ref = known.get(item.file) ?? (await putBlob(stream, id, 'blob', readFileSync(item.file)))
    known.set(item.file, ref)
    traces[relative(baseDir, item.file)] = { ...ref, suffix: item.file.endsWith('.gz') ? '.gz' : '' }
  }
  const text = readFileSync(file, 'utf8')
  const blob: PointBlob = { text, file, base_dir: baseDir, settings, identity: input.identity, traces }
  return putBlob(stream, id, 'blob', Buffer.from(JSON.stringify(blob)))
}

/** Fetches existing results, then calls `putJobs` for the rest, then waits for results. */
async function collect(
  stream: JetStream,
  id: string,
  sweep: RemoteSweep,
  waiting: Map<string, number>,
  begin: () => Promise<void>,
): Promise<void> {
  let consumer: string | null = null
  let hasBegun = false
  let idleMs = 0
  while (waiting.size > 0 && !sweep.signal.aborted) {
    try {
      consumer ??= await stream.ensureConsumer({
        stream: DATA,
        durable: null,
        filter: resultsOf(id),
        ackWaitMs: 60_000,
      })
      const delivery = await stream.next(DATA, consumer, hasBegun ? POLL_MS : 100)
      if (delivery !== null) {
        const message = readResult(delivery.data)
        if (message.ok) await take(stream, id, sweep, waiting, message.value)
        else sweep.tell(`${delivery.subject}: invalid result (${message.why}): ignored`)
        await delivery.ack()
        idleMs = 0
      } else if (!hasBegun) {
        await begin()
        hasBegun = true
      } else {
        idleMs += POLL_MS
        if (idleMs === NO_WORKER_MS && (await stream.isUnattended(JOBS, WORKERS)))
          sweep.tell(
            `no worker is connected: start \`headroom sim worker --nats ${sweep.url}\` on any machine`,
          )
      }
    } catch (error) {
      if (!isPassing(error)) throw error
      // The broker is temporarily unavailable; the consumer may not survive that.
      consumer = null
      await wait(RETRY_MS)
    }
  }
}

/** Names of the client's errors for a broker that is unavailable. */
const PASSING: ReadonlySet<string> = new Set([
  'TimeoutError',
  'RequestError',
  'ConnectionError',
  'ClosedConnectionError',
  'NoRespondersError',
  'DrainingConnectionError',
])

function isPassing(error: unknown): boolean {
  if (error instanceof JetStreamError) return error.code === 404 || error.code === 503
  return error instanceof Error && PASSING.has(error.name)
}

async function take(
  stream: JetStream,
  id: string,
  { plan, store, onAnswer }: RemoteSweep,
  waiting: Map<string, number>,
  message: ResultMessage,
): Promise<void> {
  const index = waiting.get(message.run)
  if (message.format !== FORMAT || index === undefined) return
  if (message.kind === 'failed')
    throw errorOf({ kind: 'failed', name: message.name, message: message.message, stack: undefined })
  const job = plan.jobs[index] as SweepPlan['jobs'][number]
  if (store !== null) {
    const partial = partialFolder(store.folder, job)
    const keep = (name: string, content: string | Uint8Array): void => {
      try {
        writeFileSync(join(partial, name), content)
      } catch (error) {
        cannotBeWritten(`--out ${store.folder}`, error)
      }
    }
    for (const name of filesOf(store)) {
      const ref = message.files[name]
      if (ref === undefined) throw new Error(`a worker did not send ${name} of run ${message.run}`)
      keep(name, await getBlob(stream, id, 'file', ref))
    }
    keep('timing.json', jsonText(message.timing))
    keepRun(
      store.folder,
      partial,
      { ...plan.pointOf(job).input.identity, ...store, job },
      message.operator_faults,
    )
  }
  waiting.delete(message.run)
  onAnswer(
    { run: sweepRunOf(job, message.result), timing: message.timing, operatorFaults: message.operator_faults },
    index,
  )
}
