/**
 * Distributes jobs over worker processes, one job per process at a time. Answers are in the order of the
 * jobs.
 */
import { JobProcess } from './job-process.ts'

export interface PoolOptions<Answer = unknown> {
  /** At least 1; at most one process per job is started. */
  readonly processes: number
  /** Total progress of all jobs, 0 to 1. */
  readonly onProgress: (fraction: number) => void
  /** Called with each answer and the index of its job. */
  readonly onAnswer?: (answer: Answer, index: number) => void
  /** Ends the processes at once, during their jobs. */
  readonly signal?: AbortSignal
}

/**
 * Rejects with the first failure, with the name and message it had in the worker, or with the reason of the
 * signal; the other jobs are then aborted.
 */
export async function runInWorkers<Job extends object, Answer>(
  module: URL,
  jobs: readonly Job[],
  options: PoolOptions<Answer>,
): Promise<Answer[]> {
  const answers = new Array<Answer>(jobs.length)
  const report = progressOf(jobs.length, options.onProgress)
  let next = 0
  const workers = Array.from(
    { length: Math.min(options.processes, jobs.length) },
    () => new JobProcess<Job, Answer>(module),
  )
  const serve = async (worker: JobProcess<Job, Answer>): Promise<void> => {
    while (next < jobs.length) {
      const index = next++
      const answer = await worker.ask(jobs[index] as Job, (fraction) => report(index, fraction))
      answers[index] = answer
      options.onAnswer?.(answer, index)
      report(index, 1)
    }
  }
  const { signal } = options
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(reasonOf(signal))
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    await Promise.race([Promise.all(workers.map(serve)), aborted.promise])
  } finally {
    signal?.removeEventListener('abort', abort)
    await Promise.all(workers.map((worker) => worker.end()))
  }
  return answers
}

/** Returns the total progress of a number of jobs, updated by each of them. */
export function progressOf(
  jobs: number,
  onProgress: (fraction: number) => void,
): (index: number, fraction: number) => void {
  const fractions = new Float64Array(jobs)
  let sum = 0
  return (index, fraction) => {
    sum += fraction - (fractions[index] ?? 0)
    fractions[index] = fraction
    onProgress(Math.min(1, sum / jobs))
  }
}

function reasonOf(signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new Error('stopped')
}
