/** A worker process that answers jobs, one at a time, as serve-jobs.ts does there. */
import { WorkerProcess, type WorkerLimits } from './worker-process.ts'

/** What it says: how far the job is, or its answer, or why there is none. */
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

  /** Takes no job any more. */
  get isEnded(): boolean {
    return this.#isEnded || this.#worker.fault !== null
  }

  /** Rejects with what the job threw, by its name, or with WorkerFault. */
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

  /** Now, whatever it does. */
  end(): Promise<void> {
    this.#isEnded = true
    return this.#isBusy ? this.#worker.end() : this.#worker.stop()
  }
}

/** Errors lose their class on the way between processes; the name says what they were. */
export function errorOf({ name, message, stack }: Extract<FromWorker<never>, { kind: 'failed' }>): Error {
  const error = new Error(message)
  error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}
