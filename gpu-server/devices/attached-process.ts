/**
 * The process of a lease. It has no guard: this server stops, continues and ends it by signals to this one
 * process, and its children are not part of the lease.
 */
import { readdirSync } from 'node:fs'
import { isAlive, stateOf, threadStateOf, type ProcessKey } from '../guard/process-table.ts'

const STOPPED: ReadonlySet<string | null> = new Set(['T', 't', 'Z', 'X', null])

export interface AttachedProcessOptions {
  readonly key: ProcessKey
  readonly wait: (ms: number) => Promise<void>
}

const POLL_MS = 5
const STOP_LIMIT_MS = 10_000

export class AttachedProcess {
  readonly key: ProcessKey
  readonly #wait: (ms: number) => Promise<void>

  constructor({ key, wait }: AttachedProcessOptions) {
    this.key = key
    this.#wait = wait
  }

  /** The pid has not gone to another process. */
  get isAlive(): boolean {
    return isAlive(this.key)
  }

  get isStopped(): boolean {
    return stateOf(this.key.pid) === 'T'
  }

  /** All its threads are stopped, or it has ended. */
  get isStill(): boolean {
    const { pid } = this.key
    return !this.isAlive || threadsOf(pid).every((thread) => STOPPED.has(threadStateOf(pid, thread)))
  }

  /** Resolves when all its threads are stopped, or it has ended; rejects when that takes too long. */
  async suspend(): Promise<void> {
    this.signal('SIGSTOP')
    for (let waited = 0; !this.isStill; waited += POLL_MS) {
      if (waited > STOP_LIMIT_MS) throw new Error(`process ${this.key.pid} cannot be stopped`)
      await this.#wait(POLL_MS)
    }
  }

  resume(): void {
    this.signal('SIGCONT')
  }

  /** Does nothing once it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (!this.isAlive) return
    try {
      process.kill(this.key.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}
