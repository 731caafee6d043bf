/** A worker thread with a bounded heap that answers jobs, one at a time, as serve-jobs.ts does there. */
import { Worker } from 'node:worker_threads'
import { errorOf, type FromWorker } from '../worker-pool.ts'
import { LIMITS } from './limits.ts'

/** The thread is gone before it has answered: out of memory, or ended. */
export class ThreadFault extends Error {
  override readonly name = 'ThreadFault'
}

export class SimulationThread<Job, Answer> {
  readonly #worker: Worker
  #isEnded = false

  constructor(module: URL, heapMib: number = LIMITS.heapMib) {
    this.#worker = new Worker(module, { resourceLimits: { maxOldGenerationSizeMb: heapMib }, stdout: false })
    // Somebody has to listen, or a fault between two jobs would end the process.
    this.#worker.on('error', () => {
      this.#isEnded = true
    })
    this.#worker.once('exit', () => {
      this.#isEnded = true
    })
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Rejects with what the job threw, by its name, or with ThreadFault. */
  ask(job: Job, onProgress: (fraction: number) => void = () => {}): Promise<Answer> {
    const worker = this.#worker
    return new Promise((resolve, reject) => {
      const settle = (end: () => void): void => {
        worker.off('message', onMessage).off('error', onError).off('exit', onExit)
        end()
      }
      const onMessage = (message: FromWorker<Answer>): void => {
        if (message.kind === 'progress') onProgress(message.fraction)
        else settle(() => (message.kind === 'answer' ? resolve(message.answer) : reject(errorOf(message))))
      }
      const onError = (error: unknown): void => settle(() => reject(faultOf(error)))
      const onExit = (): void => settle(() => reject(new ThreadFault('its thread was ended')))
      worker.on('message', onMessage).on('error', onError).on('exit', onExit)
      if (this.#isEnded) onExit()
      else worker.postMessage(job)
    })
  }

  async end(): Promise<void> {
    this.#isEnded = true
    await this.#worker.terminate()
  }
}

export function faultOf(error: unknown): ThreadFault {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return new ThreadFault('it needed more memory than a simulation may have')
  return new ThreadFault(`its thread failed: ${message}`, { cause: error })
}
