/**
 * Jobs over worker processes, each one job at a time. Answers come in the order of the jobs, whoever finished
 * first.
 */
import { JobProcess } from './job-process.ts'

export interface PoolOptions<Answer = unknown> {
  /** At least 1; no more processes than jobs are started. */
  readonly processes: number
  /** Of all jobs together, 0 to 1. */
  readonly onProgress: (fraction: number) => void
  /** Each answer as it comes, with the number of its job. */
  readonly onAnswer?: (answer: Answer, index: number) => void
  /** Ends the processes at once, in the middle of their jobs. */
  readonly signal?: AbortSignal
}

/**
 * Rejects with the first failure, of the same name and message as in the worker, or with the reason of the
 * signal; the other jobs are given up then.
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

/** How far so many jobs are together, told as each of them comes on. */
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
