/**
 * How a sweep lies on a broker. Two streams: jobs, a work queue from which each is given to one worker at a time; and data, which holds by the id of the
 * sweep what the jobs need (scenarios and traces, by content hash, in chunks) and what came of them.
 */
import type { RunResult } from '../../../simulator/report/result.ts'
import type { RunIdentity } from '../../../simulator/run.ts'
import type { Settings } from '../../../simulator/sweep.ts'
import type { Timing } from '../../sim/stopwatch.ts'
import type { BlobRef } from './blobs.ts'
import type { JetStream } from './jetstream.ts'

export const JOBS = 'HEADROOM_SWEEP_JOBS'
export const DATA = 'HEADROOM_SWEEP_DATA'
export const WORKERS = 'workers'
export const FORMAT = 1
/** What nobody has fetched is thrown away then. */
const KEPT_FOR_MS = 7 * 86_400_000

export const jobSubject = (sweep: string, run: string): string => `headroom.sweep.job.${sweep}.${run}`
export const jobsOf = (sweep: string): string => `headroom.sweep.job.${sweep}.>`
export const blobSubject = (sweep: string, sha256: string, chunk: number | '*'): string =>
  `headroom.sweep.data.${sweep}.blob.${sha256}.${chunk}`
export const resultSubject = (sweep: string, run: string): string => `headroom.sweep.data.${sweep}.result.${run}`
export const resultsOf = (sweep: string): string => `headroom.sweep.data.${sweep}.result.*`
export const dataOf = (sweep: string): string => `headroom.sweep.data.${sweep}.>`

export interface BuildIdentity {
  readonly version: string
  /** Null where it is not known. */
  readonly commit: string | null
}

/** What lies in the work queue. */
export interface JobMessage extends BuildIdentity {
  readonly format: typeof FORMAT
  readonly sweep: string
  /** Names the run within the sweep. */
  readonly run: string
  readonly overcommit_percent: number
  readonly seed: number
  /** A PointBlob. */
  readonly point: BlobRef
  readonly files: 'none' | 'all' | 'without_journal'
  /** A worker that is silent for so long counts as gone. */
  readonly silent_ms: number
}

/** A scenario with everything that it reads. */
export interface PointBlob {
  readonly text: string
  /** Of the file where the sweep was started; only names are made of them. */
  readonly file: string
  readonly base_dir: string
  readonly settings: Settings
  readonly identity: RunIdentity
  /** By their path from base_dir. */
  readonly traces: Readonly<Record<string, BlobRef & { readonly suffix: string }>>
}

export type ResultMessage = {
  readonly format: typeof FORMAT
  readonly run: string
} & (
  | {
      readonly kind: 'done'
      readonly result: RunResult
      readonly timing: Timing
      readonly operator_faults: readonly string[]
      readonly files: Readonly<Record<string, BlobRef>>
    }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string }
)

/** Makes streams and the queue where they are not there yet. */
export async function prepareBroker(stream: JetStream, silentMs: number): Promise<void> {
  await stream.ensureStream({
    name: JOBS,
    subjects: ['headroom.sweep.job.>'],
    retention: 'workqueue',
    maxAgeMs: KEPT_FOR_MS,
    perSubject: -1,
  })
  await stream.ensureStream({ name: DATA, subjects: ['headroom.sweep.data.>'], retention: 'limits', maxAgeMs: KEPT_FOR_MS, perSubject: 1 })
  await stream.ensureConsumer({ stream: JOBS, durable: WORKERS, filter: 'headroom.sweep.job.>', ackWaitMs: silentMs })
}
