/** A worker process's side of job-process.ts. */
import type { FromWorker } from './job-process.ts'
import { linkToParent } from './worker-link.ts'

/** Minimum step between progress reports, however often a job reports: the receiver has other work. */
const PROGRESS_STEP = 0.002
const PROGRESS_INTERVAL_MS = 50

/** Answers every job that is sent to this process. */
export function serveJobs<Job, Answer>(
  work: (job: Job, onProgress: (fraction: number) => void) => Promise<Answer>,
): void {
  const parent = linkToParent()
  const post = (message: FromWorker<Answer>): void => parent.post(message)
  parent.listen((job) => {
    let reported = 0
    let reportedAt = performance.now()
    const onProgress = (fraction: number): void => {
      parent.exitIfOrphaned()
      const now = performance.now()
      if (fraction < reported + PROGRESS_STEP || now - reportedAt < PROGRESS_INTERVAL_MS) return
      reported = fraction
      reportedAt = now
      post({ kind: 'progress', fraction })
    }
    work(job as Job, onProgress).then(
      (answer) => post({ kind: 'answer', answer }),
      (error: unknown) => post(failureOf(error)),
    )
  })
}

function failureOf(error: unknown): FromWorker<never> {
  if (!(error instanceof Error))
    return { kind: 'failed', name: 'Error', message: String(error), stack: undefined }
  return { kind: 'failed', name: error.name, message: error.message, stack: error.stack }
}
