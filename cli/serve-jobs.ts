/** A worker thread's side of worker-pool.ts. */
import { parentPort } from 'node:worker_threads'
import type { FromWorker } from './worker-pool.ts'

/** Not more often than this, however often a job tells. */
const PROGRESS_STEP = 0.002

/** Answers every job that is posted to this thread. */
export function serveJobs<Job, Answer>(work: (job: Job, onProgress: (fraction: number) => void) => Promise<Answer>): void {
  const port = parentPort
  if (port === null) throw new Error('this module runs in a worker thread only')
  const post = (message: FromWorker<Answer>): void => port.postMessage(message)
  port.on('message', (job: Job) => {
    let told = 0
    const onProgress = (fraction: number): void => {
      if (fraction < told + PROGRESS_STEP) return
      told = fraction
      post({ kind: 'progress', fraction })
    }
    work(job, onProgress).then(
      (answer) => post({ kind: 'answer', answer }),
      (error: unknown) => post(failureOf(error)),
    )
  })
}

function failureOf(error: unknown): FromWorker<never> {
  if (!(error instanceof Error)) return { kind: 'failed', name: 'Error', message: String(error), stack: undefined }
  return { kind: 'failed', name: error.name, message: error.message, stack: error.stack }
}
