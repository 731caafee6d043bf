import type { GuardedTask } from './guards.ts'
import { codeOf, GuardFault } from './guard-fault.ts'
import {
  exitOfReport,
  readExit,
  readStarted,
  writeUnknownExit,
  type FolderExit,
  type FolderStarted,
  type FolderTask,
} from './guard-folder.ts'
import { removeCgroup } from './guard-cgroup.ts'
import { GuardLink } from './guard-link.ts'
import { sweep } from './guard-sweep.ts'
import { descendantsOf, isRunnable } from './process-table.ts'
import { errorText } from '../../protocol/error-text.ts'

const SWEEP_ROUND_MS = 10_000
const UNKNOWN_EXIT: FolderExit = {
  exit: { code: null, signal: null },
  byLease: false,
  byOrder: false,
  neverRan: false,
  byMemory: false,
}

/** One attempt and its current or former guard. */
export class HeldGuard {
  readonly task: FolderTask
  readonly folder: string
  readonly #onEnd: (held: HeldGuard, fault: Error | null) => void
  #guardPid = 0
  #started: FolderStarted | null = null
  #link: GuardLink | null = null
  #reportedExit: FolderExit | null = null
  #state: GuardedTask['state'] = 'running'
  #exit: FolderExit | null = null
  #didLeaseEnd = false
  #isStopping = false
  #isReleased = false

  /**
   * @param onEnd called once nothing is left of a task that was alive after `attach`; with a fault each time
   * that something still is
   */
  constructor(task: FolderTask, folder: string, onEnd: (held: HeldGuard, fault: Error | null) => void) {
    this.task = task
    this.folder = folder
    this.#onEnd = onEnd
  }

  view(): GuardedTask {
    const { taskId, attempt, record, place } = this.task
    return {
      taskId,
      attempt,
      record,
      ...(place === undefined ? {} : { place }),
      state: this.#state,
      exit: this.#exit?.exit ?? null,
      didLeaseEnd: this.#didLeaseEnd,
      ...(this.#isStopping ? { isStopping: true } : {}),
      ...(this.#exit?.byOrder === true ? { wasOrdered: true } : {}),
      ...(this.#exit?.neverRan === true ? { neverRan: true } : {}),
      ...(this.#exit?.byMemory === true ? { didReachMemoryLimit: true } : {}),
    }
  }

  get isEnded(): boolean {
    return this.#exit !== null
  }

  /**
   * Connects to the guard with this pid. Rejects when it does not listen, or ends before it has reported the
   * state of the task.
   */
  async attach(guardPid: number): Promise<void> {
    let isAttached = false
    const link = await GuardLink.open(this.folder, {
      onLine: (line) => this.#receive(line),
      onClosed: () => {
        if (isAttached) void this.settle()
      },
    })
    this.#link = link
    try {
      this.#receive(await link.ask('status'))
    } catch (error) {
      link.close()
      throw error
    }
    isAttached = true
    this.#guardPid = guardPid
    this.#started = await readStarted(this.folder)
  }

  async suspend(): Promise<void> {
    await this.#ask('suspend')
    if (!this.isEnded) this.#state = 'suspended'
  }

  async resume(): Promise<void> {
    await this.#ask('resume')
    if (this.isEnded) return
    this.#state = 'running'
    this.#didLeaseEnd = false
  }

  /** Ignores errors: later reports show the effect, and an ended guard needs no message. */
  send(text: string): void {
    this.#ask(text).catch(() => undefined)
  }

  /** A guard of an earlier version knows no grace and kills at once. */
  stop(graceMs: number): void {
    if (graceMs === 0) return this.send('kill')
    this.#ask(`stop ${Math.floor(graceMs)}`).then(
      () => (this.#isStopping = !this.isEnded),
      (error: unknown) => {
        if (errorText(error).includes('unknown command')) this.send('kill')
      },
    )
  }

  processIds(): readonly number[] {
    if (this.#guardPid === 0 || this.isEnded) return []
    const keeperPid = this.#started?.keeper.pid ?? 0
    // The init of a container is not a child of the guard.
    const root = this.task.container === undefined ? this.#guardPid : keeperPid
    return descendantsOf(root).filter((pid) => pid !== keeperPid && isRunnable(pid))
  }

  /**
   * The guard is gone or never existed: reads how the task ended from its record, or first kills what is
   * left.
   */
  async settle(): Promise<void> {
    while (!this.isEnded && !this.#isReleased) {
      try {
        await this.settleOnce(SWEEP_ROUND_MS)
        this.#onEnd(this, null)
      } catch (error) {
        this.#onEnd(this, error instanceof Error ? error : new GuardFault(errorText(error)))
        if (codeOf(error) !== '') return // a disk error, not a process: a retry does not help
      }
    }
  }

  async settleOnce(limitMs: number): Promise<void> {
    const started = this.#started ?? (await readStarted(this.folder))
    const recorded = (await readExit(this.folder)) ?? this.#reportedExit
    if (recorded === null) {
      await sweep(this.task, started, limitMs)
      await writeUnknownExit(this.folder)
    }
    removeCgroup(started?.cgroup ?? null)
    for (const folder of this.task.limitCgroups ?? []) removeCgroup(folder)
    this.#end(recorded ?? UNKNOWN_EXIT)
  }

  /** Releases the guard: it lives on, and its end is not reported. */
  release(): void {
    this.#isReleased = true
    this.#link?.close()
  }

  #ask(text: string): Promise<string> {
    if (this.#link === null || this.isEnded)
      return Promise.reject(new GuardFault(`guard: ${text}: the task has ended`))
    return this.#link.ask(text)
  }

  #receive(line: string): void {
    this.#reportedExit ??= exitOfReport(line)
    if (/\bstate=suspended\b/.test(line)) this.#state = 'suspended'
    if (/\blease=1\b/.test(line)) this.#didLeaseEnd = true
    if (/\bstopping=1\b/.test(line)) this.#isStopping = true
  }

  #end(exit: FolderExit): void {
    this.#exit = exit
    this.#state = 'ended'
    this.#isStopping = false
    this.#didLeaseEnd = exit.byLease
    this.#link?.close()
  }
}
