/**
 * Where a sweep is on a broker. Three streams: jobs, a work queue from which each is given to one worker at a
 * time; data, which holds by the id of the sweep what the jobs need (scenarios and traces, by content hash,
 * in chunks) and their results; and a bounded one of messages that were no jobs.
 */
import type { JetStream } from './jetstream.ts'

export const JOBS = 'HEADROOM_SWEEP_JOBS'
export const DATA = 'HEADROOM_SWEEP_DATA'
export const WORKERS = 'workers'
/** Messages in the work queue that were no jobs. */
export const DEAD = 'HEADROOM_SWEEP_DEAD'
export const DEAD_SUBJECT = 'headroom.sweep.dead'
/** The oldest are dropped. */
export const MAX_DEAD_LETTERS = 1_000
const MAX_DEAD_BYTES = 16 * 1024 * 1024
/** Past these a sweep is refused more. */
const MAX_WAITING_JOBS = 1_000_000
/** What nobody has fetched is thrown away then. */
const KEPT_FOR_MS = 7 * 86_400_000

export const jobSubject = (sweep: string, run: string): string => `headroom.sweep.job.${sweep}.${run}`
export const jobsOf = (sweep: string): string => `headroom.sweep.job.${sweep}.>`
/** What a job needs, or what a run has made: a worker may not replace the former. */
export type BlobKind = 'blob' | 'file'
export const blobSubject = (sweep: string, kind: BlobKind, sha256: string, chunk: number): string =>
  `headroom.sweep.data.${sweep}.${kind}.${sha256}.${chunk}`
export const resultSubject = (sweep: string, run: string): string =>
  `headroom.sweep.data.${sweep}.result.${run}`
export const resultsOf = (sweep: string): string => `headroom.sweep.data.${sweep}.result.*`
export const dataOf = (sweep: string): string => `headroom.sweep.data.${sweep}.>`

/**
 * Makes streams and the queue where they are not there yet. Who starts a sweep does so; a worker has no right
 * to.
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
    // What the broker gives to JetStream is the limit.
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
