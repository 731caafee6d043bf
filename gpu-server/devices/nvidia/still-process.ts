/**
 * Runs driver work on a process whose own threads are stopped. A program that runs while its memory is
 * elsewhere can crash in a call that does not wait: with driver 580.159.04 `cuCtxSynchronize` ends in
 * SIGSEGV. The driver copies in one thread of the process, the restore thread. All other threads are held by
 * ptrace; a stopped process is continued for the work and stopped again.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HelperFault } from './helper-messages.ts'
import type { TraceCalls } from './trace-calls.ts'

const HOLD_TIMEOUT_MS = 5_000
const POLL_MS = 1

export interface StillProcessParts {
  readonly trace: TraceCalls
  readonly proc: string
  readonly restoreThread: (pid: number) => Promise<number>
  /**
   * Ends this helper: a thread that misses the deadline would stop later, and only the end of the tracer
   * releases it then.
   */
  readonly giveUp: (why: string) => never
}

export class StillProcesses {
  readonly #parts: StillProcessParts

  constructor(parts: StillProcessParts) {
    this.#parts = parts
  }

  /**
   * Runs `work` with all threads except the restore thread held; afterwards the process is stopped. If it
   * throws, the process is as before.
   */
  async continueAround<T>(pid: number, work: () => Promise<T>): Promise<T> {
    const thread = await this.#restoreThread(pid)
    if (thread === null) return work()
    const wasStopped = this.#isStopped(pid, thread)
    const held = await this.#hold(pid, thread)
    try {
      if (wasStopped) await this.#signal(pid, thread, 'SIGCONT')
      const result = await work()
      await this.#signal(pid, thread, 'SIGSTOP')
      return result
    } catch (cause) {
      if (wasStopped) await this.#signal(pid, thread, 'SIGSTOP')
      throw cause
    } finally {
      this.#release(held)
    }
  }

  /**
   * Runs `work` on a process that may be stopped: the restore thread could not run then. A stopped process is
   * stopped again afterwards; a running process is left running.
   */
  async continueIfStopped<T>(pid: number, work: () => Promise<T>): Promise<T> {
    const thread = await this.#restoreThread(pid)
    return thread !== null && this.#isStopped(pid, thread) ? this.continueAround(pid, work) : work()
  }

  /**
   * In the numbering of this host; null: the process has ended, or the driver does not know it. The driver
   * answers for a stopped process too.
   */
  async #restoreThread(pid: number): Promise<number | null> {
    const threads = this.#threads(pid)
    if (threads.length === 0) return null
    const threadId = await this.#parts.restoreThread(pid).catch((cause: unknown) => {
      if (cause instanceof HelperFault) return null
      throw cause
    })
    if (threadId === null) return null
    // A process in its own PID namespace also has its own thread numbers.
    const found =
      threads.find((thread) => thread === threadId) ??
      threads.find((thread) => this.#numbers(pid, thread).at(-1) === threadId)
    if (found === undefined)
      throw lost(`process ${pid} does not have the thread ${threadId} that the driver uses for copies`)
    return found
  }

  /** Returns the held threads. If one of them cannot be held, all are released. */
  async #hold(pid: number, spared: number): Promise<ReadonlySet<number>> {
    const held = new Set<number>()
    const deadline = performance.now() + HOLD_TIMEOUT_MS
    try {
      // A thread that was not held yet may have started another.
      for (
        let fresh = this.#others(pid, spared, held);
        fresh.length > 0;
        fresh = this.#others(pid, spared, held)
      ) {
        for (const thread of fresh)
          if (this.#parts.trace.seize(thread)) await this.#stop(pid, thread, held, deadline)
        if (performance.now() > deadline)
          throw lost(`the threads of process ${pid} did not stop within ${HOLD_TIMEOUT_MS} ms`)
      }
    } catch (cause) {
      this.#release(held)
      throw cause
    }
    return held
  }

  async #stop(pid: number, thread: number, held: Set<number>, deadline: number): Promise<void> {
    if (!this.#parts.trace.interrupt(thread)) return
    while (!this.#parts.trace.hasStopped(thread)) {
      if (performance.now() > deadline)
        this.#parts.giveUp(`thread ${thread} of process ${pid} did not stop within ${HOLD_TIMEOUT_MS} ms`)
      await pause()
    }
    held.add(thread)
  }

  #release(held: ReadonlySet<number>): void {
    for (const thread of held) this.#parts.trace.detach(thread)
  }

  async #signal(pid: number, thread: number, signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    try {
      process.kill(pid, signal)
    } catch {
      return // The process has ended.
    }
    const deadline = performance.now() + HOLD_TIMEOUT_MS
    while (this.#threads(pid).includes(thread) && this.#isStopped(pid, thread) !== (signal === 'SIGSTOP')) {
      if (performance.now() > deadline)
        throw lost(`process ${pid} did not obey ${signal} within ${HOLD_TIMEOUT_MS} ms`)
      await pause()
    }
  }

  #others(pid: number, spared: number, held: ReadonlySet<number>): readonly number[] {
    return this.#threads(pid).filter(
      (thread) => thread !== spared && !held.has(thread) && !this.#isDead(pid, thread),
    )
  }

  /** Empty: no such process. */
  #threads(pid: number): readonly number[] {
    try {
      return readdirSync(join(this.#parts.proc, String(pid), 'task')).map(Number)
    } catch {
      return []
    }
  }

  #isStopped(pid: number, thread: number): boolean {
    return this.#state(pid, thread) === 'T'
  }

  #isDead(pid: number, thread: number): boolean {
    return /^[ZXx]?$/.test(this.#state(pid, thread))
  }

  /** Returns a letter of proc_pid_stat(5); empty: the thread has ended. */
  #state(pid: number, thread: number): string {
    return /^State:\s*(\S)/m.exec(this.#status(pid, thread))?.[1] ?? ''
  }

  #numbers(pid: number, thread: number): readonly number[] {
    return (/^NSpid:\s*(.*)$/m.exec(this.#status(pid, thread))?.[1] ?? '').split(/\s+/).map(Number)
  }

  #status(pid: number, thread: number): string {
    try {
      return readFileSync(join(this.#parts.proc, String(pid), 'task', String(thread), 'status'), 'utf8')
    } catch {
      return ''
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS))
}

function lost(message: string): HelperFault {
  return new HelperFault({ kind: 'driver', message, code: null })
}
