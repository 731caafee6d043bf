/** Jobs over worker threads, each thread one job at a time. Answers come in the order of the jobs, whoever finished first. */
import { Worker } from 'node:worker_threads'

/** What a worker says: how far the job is, or its answer, or why there is none. */
export type FromWorker<Answer> =
  | { readonly kind: 'progress'; readonly fraction: number }
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string; readonly stack: string | undefined }

export interface PoolOptions<Answer = unknown> {
  /** At least 1; no more threads than jobs are started. */
  readonly threads: number
  /** Of all jobs together, 0 to 1. */
  readonly onProgress: (fraction: number) => void
  /** Each answer as it comes, with the number of its job. */
  readonly onAnswer?: (answer: Answer, index: number) => void
  /** Ends the threads at once, in the middle of their jobs. */
  readonly signal?: AbortSignal
}

/**
 * Rejects with the first failure, of the same name and message as in the worker, or with the reason of the signal; the other jobs are given up
 * then.
 */
export async function runInWorkers<Job, Answer>(module: URL, jobs: readonly Job[], options: PoolOptions<Answer>): Promise<Answer[]> {
  const answers = new Array<Answer>(jobs.length)
  const fractions = jobs.map(() => 0)
  const report = (index: number, fraction: number): void => {
    fractions[index] = fraction
    options.onProgress(fractions.reduce((sum, each) => sum + each, 0) / jobs.length)
  }
  let next = 0
  const workers = Array.from({ length: Math.min(options.threads, jobs.length) }, () => new Worker(module))
  const serve = async (worker: Worker): Promise<void> => {
    while (next < jobs.length) {
      const index = next++
      const answer = await askWorker<Job, Answer>(worker, jobs[index] as Job, (fraction) => report(index, fraction))
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
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  return answers
}

function reasonOf(signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new Error('stopped')
}

/** One job for one thread, which does no other meanwhile. */
export function askWorker<Job, Answer>(worker: Worker, job: Job, onProgress: (fraction: number) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void): void => {
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      end()
    }
    const onMessage = (message: FromWorker<Answer>): void => {
      switch (message.kind) {
        case 'progress':
          return onProgress(message.fraction)
        case 'answer':
          return settle(() => resolve(message.answer))
        case 'failed':
          return settle(() => reject(errorOf(message)))
      }
    }
    const onError = (error: unknown): void => settle(() => reject(error instanceof Error ? error : new Error(String(error))))
    const onExit = (code: number): void => settle(() => reject(new Error(`a worker thread ended with code ${code}`)))
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    worker.postMessage(job)
  })
}

/** Errors lose their class on the way between threads; the name says what they were. */
export function errorOf({ name, message, stack }: Extract<FromWorker<never>, { kind: 'failed' }>): Error {
  const error = new Error(message)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}
