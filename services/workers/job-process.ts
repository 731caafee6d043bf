/** A worker process that answers jobs, one at a time; serve-jobs.ts is its other side. */
import { WorkerProcess, type WorkerLimits } from './worker-process.ts'

/** Messages of the process: progress of the job, its answer, or its failure. */
export type FromWorker<Answer> =
  | { readonly kind: 'progress'; readonly fraction: number }
  | { readonly kind: 'answer'; readonly answer: Answer }
  | {
      readonly kind: 'failed'
      readonly name: string
      readonly message: string
      readonly stack: string | undefined
    }

export class JobProcess<Job extends object, Answer> {
  readonly #worker: WorkerProcess
  #isBusy = false
  #isEnded = false

  constructor(module: URL, limits: WorkerLimits = {}) {
    this.#worker = new WorkerProcess(module, limits)
  }

  /** True if it accepts no more jobs. */
  get isEnded(): boolean {
    return this.#isEnded || this.#worker.fault !== null
  }

  get cpuMs(): number {
    return this.#worker.cpuMs
  }

  /** Rejects with the error of the job, by name, or with WorkerFault. */
  ask(job: Job, onProgress: (fraction: number) => void = () => {}): Promise<Answer> {
    const worker = this.#worker
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const heard = (message: FromWorker<Answer>): void => {
      switch (message.kind) {
        case 'progress':
          return onProgress(message.fraction)
        case 'answer':
          return resolve(message.answer)
        case 'failed':
          return reject(errorOf(message))
      }
    }
    const stopListening = worker.listen({
      onMessage: (message) => heard(message as FromWorker<Answer>),
      onEnd: reject,
    })
    this.#isBusy = true
    worker.post(job)
    return promise.finally(() => {
      this.#isBusy = false
      stopListening()
    })
  }

  /** Ends it at once. */
  end(): Promise<void> {
    this.#isEnded = true
    return this.#isBusy ? this.#worker.end() : this.#worker.stop()
  }
}

/** Errors lose their class between processes; the name identifies them. */
export function errorOf({ name, message, stack }: Extract<FromWorker<never>, { kind: 'failed' }>): Error {
  const error = new Error(message)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}
