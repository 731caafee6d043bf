/**
 * Streams and subjects of a sweep on a broker. Three streams: jobs, a work queue that gives each job to one
 * worker at a time; data, which holds by sweep id the input of the jobs (scenarios and traces, by content
 * hash, in chunks) and their results; and a bounded one of invalid messages.
 */
import type { BrokerRights } from '../../../protocol/broker-rights.ts'
import type { JetStream } from './jetstream.ts'

export const JOBS = 'HEADROOM_SWEEP_JOBS'
export const DATA = 'HEADROOM_SWEEP_DATA'
export const WORKERS = 'workers'
/** Invalid messages of the work queue. */
export const DEAD = 'HEADROOM_SWEEP_DEAD'
export const DEAD_SUBJECT = 'headroom.sweep.dead'
/** The oldest are dropped. */
export const MAX_DEAD_LETTERS = 1_000
const MAX_DEAD_BYTES = 16 * 1024 * 1024
/** Beyond this a sweep's jobs are refused. */
const MAX_WAITING_JOBS = 1_000_000
/** Unfetched data is dropped after this time. */
const KEPT_FOR_MS = 7 * 86_400_000

export const jobSubject = (sweep: string, run: string): string => `headroom.sweep.job.${sweep}.${run}`
export const jobsOf = (sweep: string): string => `headroom.sweep.job.${sweep}.>`
/** Input of a job, or output of a run: a worker may not replace input. */
export type BlobKind = 'blob' | 'file'
export const blobSubject = (sweep: string, kind: BlobKind, sha256: string, chunk: number): string =>
  `headroom.sweep.data.${sweep}.${kind}.${sha256}.${chunk}`
export const resultSubject = (sweep: string, run: string): string =>
  `headroom.sweep.data.${sweep}.result.${run}`
export const resultsOf = (sweep: string): string => `headroom.sweep.data.${sweep}.result.*`
export const dataOf = (sweep: string): string => `headroom.sweep.data.${sweep}.>`

/**
 * Creates missing streams and the queue. Called by the command that starts a sweep; a worker lacks the
 * permission.
 */
export async function prepareBroker(stream: JetStream, silentMs: number): Promise<void> {
  await stream.ensureStream({
    name: JOBS,
    subjects: ['headroom.sweep.job.>'],
    retention: 'workqueue',
    maxAgeMs: KEPT_FOR_MS,
    perSubject: -1,
    maxMessages: MAX_WAITING_JOBS,
    maxBytes: -1,
    isOldestDropped: false,
  })
  await stream.ensureStream({
    name: DATA,
    subjects: ['headroom.sweep.data.>'],
    retention: 'limits',
    maxAgeMs: KEPT_FOR_MS,
    perSubject: 1,
    maxMessages: -1,
    // The limit is the broker's limit for JetStream.
    maxBytes: -1,
    isOldestDropped: false,
  })
  await stream.ensureStream({
    name: DEAD,
    subjects: [DEAD_SUBJECT],
    retention: 'limits',
    maxAgeMs: KEPT_FOR_MS,
    perSubject: -1,
    maxMessages: MAX_DEAD_LETTERS,
    maxBytes: MAX_DEAD_BYTES,
    isOldestDropped: true,
  })
  await stream.ensureConsumer({
    stream: JOBS,
    durable: WORKERS,
    filter: 'headroom.sweep.job.>',
    ackWaitMs: silentMs,
  })
}

/**
 * Permissions at the broker for sweeps over machines. A worker takes jobs, reads their input, and writes
 * results. It cannot start a sweep, replace a scenario or trace, create or change a stream, or read results
 * of others.
 */

/** `sweep` runs `headroom sim sweep --workers`, `worker` runs `headroom sim worker`. */
export type SweepIdentity = { readonly kind: 'sweep' } | { readonly kind: 'worker' }

const API = '$JS.API'
const OF_ANY_SWEEP = 'headroom.sweep.data.*'

export function sweepRights({ kind }: SweepIdentity, inbox: string): BrokerRights {
  const publish = kind === 'worker' ? WORKER_PUBLISHES : SWEEP_PUBLISHES
  return { publish, subscribe: [`${inbox}.>`], mayAnswer: false }
}

const WORKER_PUBLISHES = [
  `${API}.CONSUMER.INFO.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.MSG.NEXT.${JOBS}.${WORKERS}`,
  `$JS.ACK.${JOBS}.${WORKERS}.>`,
  `${API}.DIRECT.GET.${DATA}.${OF_ANY_SWEEP}.blob.>`,
  `${OF_ANY_SWEEP}.file.*.*`,
  `${OF_ANY_SWEEP}.result.*`,
  DEAD_SUBJECT,
]

const SWEEP_PUBLISHES = [
  ...[JOBS, DATA, DEAD].flatMap((stream) => [
    `${API}.STREAM.CREATE.${stream}`,
    `${API}.STREAM.UPDATE.${stream}`,
  ]),
  `${API}.STREAM.PURGE.${JOBS}`,
  `${API}.STREAM.PURGE.${DATA}`,
  `${API}.CONSUMER.DURABLE.CREATE.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.INFO.${JOBS}.${WORKERS}`,
  `${API}.CONSUMER.CREATE.${DATA}`,
  `${API}.CONSUMER.MSG.NEXT.${DATA}.*`,
  `$JS.ACK.${DATA}.>`,
  `${API}.DIRECT.GET.${DATA}.${OF_ANY_SWEEP}.file.>`,
  'headroom.sweep.job.*.*',
  `${OF_ANY_SWEEP}.blob.*.*`,
]
