/** Runs simulations in the order of their requests, with limited concurrency. */
import type { DurationMs } from '../../../protocol/units.ts'
import type { SimulationRegistry } from './simulation-registry.ts'
import { LIMITS } from '../library/limits.ts'
import { errorText } from '../../../protocol/error-text.ts'

/** A simulation. Throws its failure; when `signal` aborts it ends its processes and rejects. */
export type Work = (how: {
  readonly signal: AbortSignal
  readonly onProgress: (fraction: number) => void
}) => Promise<void>

interface Job {
  readonly id: string
  readonly work: Work
  readonly abort: AbortController
}

/** Long enough for a change of the queue. */
const RETRY_AFTER_SECONDS = 10

export class SimulationQueue {
  readonly #registry: SimulationRegistry
  readonly #now: () => number
  readonly #withinMs: DurationMs
  readonly #waiting: Job[] = []
  readonly #running = new Map<string, Job & { readonly ended: Promise<void> }>()
  #isClosed = false

  constructor(registry: SimulationRegistry, now: () => number, withinMs: DurationMs = LIMITS.runWithinMs) {
    this.#registry = registry
    this.#now = now
    this.#withinMs = withinMs
  }

  /** Null: the queue has room. Otherwise seconds until the client should retry. */
  get retryAfterSeconds(): number | null {
    return this.#waiting.length >= LIMITS.queued || this.#isClosed ? RETRY_AFTER_SECONDS : null
  }

  /** The registry has its record already. */
  add(id: string, work: Work): void {
    this.#waiting.push({ id, work, abort: new AbortController() })
    this.#next()
  }

  /** Resolves when nothing of it runs any more. */
  async cancel(id: string, reason: string): Promise<void> {
    const index = this.#waiting.findIndex((job) => job.id === id)
    if (index >= 0) this.#waiting.splice(index, 1)
    const running = this.#running.get(id)
    running?.abort.abort()
    await running?.ended
    this.#registry.change(id, { state: 'cancelled', endedAt: this.#now(), reason })
  }

  async close(reason: string): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#waiting, ...this.#running.values()].map(({ id }) => this.cancel(id, reason)))
  }

  #next(): void {
    while (this.#running.size < LIMITS.running && !this.#isClosed) {
      const job = this.#waiting.shift()
      if (job === undefined) return
      const ended = this.#run(job).finally(() => {
        this.#running.delete(job.id)
        this.#next()
      })
      this.#running.set(job.id, { ...job, ended })
    }
  }

  async #run({ id, work, abort }: Job): Promise<void> {
    this.#registry.change(id, { state: 'running', startedAt: this.#now() })
    let isTooLate = false
    const timer = setTimeout(() => {
      isTooLate = true
      abort.abort()
    }, this.#withinMs)
    try {
      await work({ signal: abort.signal, onProgress: (fraction) => this.#registry.progressed(id, fraction) })
      this.#registry.change(id, { state: 'done', endedAt: this.#now(), progress: 1 })
    } catch (error) {
      // The caller of cancel gives the reason.
      if (abort.signal.aborted && !isTooLate) return
      const reason = isTooLate ? `It took longer than ${this.#withinMs / 1000} s.` : reasonOf(error)
      this.#registry.change(id, { state: 'failed', endedAt: this.#now(), reason })
    } finally {
      clearTimeout(timer)
    }
  }
}

const SHOWN_CHARACTERS = 2_000

/** The thrown message: scenarios, traces and limits have messages for users. */
function reasonOf(error: unknown): string {
  const message = errorText(error)
  return message.slice(0, SHOWN_CHARACTERS)
}
