/**
 * The leases of this host that have a process, for the device: such a lease is measured, suspended and ended
 * like a task.
 */
import { RANK_DEVICE, type Clock } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { folderNameOf } from '../guard/guard-folder.ts'
import type { AcceleratedTask, Accelerator } from './accelerator.ts'
import type { AttachedProcess } from './attached-process.ts'
import type { Attachments, AttachmentsListener, LeaseRef } from './attachments.ts'
import type { HostTask } from './host-task.ts'
import type { UseTracker } from './use-tracker.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface LeaseProcessesOptions {
  /** null: leases are reservations only. */
  readonly attachments: Attachments | null
  readonly accelerator: Accelerator
  readonly clock: Clock
  readonly uses: UseTracker
  readonly find: (taskId: string, attempt: number) => HostTask | null
  /** True if the process belongs to a task with a command. */
  readonly isOfTask: (pid: number) => boolean
  readonly onNote: (task: HostTask, why: string) => void
  readonly onTrouble: (why: string) => void
}

/** The process of an earlier server's lease. */
export interface FoundProcess {
  readonly process: AttachedProcess
  readonly residency: 'resident' | 'swapped_out' | 'unknown'
}

const POLL_MS: DurationMs = 100

export class LeaseProcesses {
  readonly #options: LeaseProcessesOptions
  /** Processes found, by attempt, until `take`. */
  readonly #found = new Map<string, FoundProcess>()
  /** Leases whose process is being ended. */
  readonly #ending = new Set<HostTask>()

  constructor(options: LeaseProcessesOptions) {
    this.#options = options
  }

  /** Finds what an earlier server left, and listens. */
  async open(): Promise<void> {
    const { accelerator, attachments } = this.#options
    if (attachments === null) return
    for (const { taskId, attempt, process } of attachments.load()) {
      const residency = await accelerator.residencyOf(probeOf({ taskId, attempt }, process))
      this.#found.set(folderNameOf(taskId, attempt), { process, residency })
    }
    const listener: AttachmentsListener = {
      attach: (lease, process) => this.#attach(lease, process),
      detach: (lease) => this.#detach(lease),
      signalled: ({ taskId, attempt }, isBusy) => {
        const task = this.#options.find(taskId, attempt)
        if (task !== null) this.#options.uses.signalled(task, isBusy)
      },
      has: (pid) => this.#options.isOfTask(pid),
    }
    await attachments.open(listener).catch((error: unknown) => {
      this.#options.onTrouble(`no process can register for a lease: ${(error as Error).message}`)
    })
  }

  /** Returns what an earlier server registered for this lease, once. */
  take({ taskId, attempt }: LeaseRef): FoundProcess | null {
    const key = folderNameOf(taskId, attempt)
    const found = this.#found.get(key) ?? null
    this.#found.delete(key)
    return found
  }

  /** Returns the path of the socket; null: not possible. */
  expect(lease: LeaseRef, tokenSha256: string): string | null {
    const { attachments, find } = this.#options
    const task = find(lease.taskId, lease.attempt)
    if (task === null || task.process !== null) return null
    return attachments?.expect(lease, tokenSha256) ?? null
  }

  /** SIGKILL: a lease has no stop grace. Calls `onGone` when its process has ended. */
  end(task: HostTask, onGone: () => void): void {
    if (this.#ending.has(task)) return
    this.#ending.add(task)
    this.#kill(task, onGone)
  }

  /** Leaves leases whose process has ended without one; called once a second. */
  dropEnded(tasks: Iterable<HostTask>): void {
    for (const task of tasks) {
      if (task.process === null || task.process.isAlive || this.#ending.has(task)) continue
      this.#options.onNote(task, `its process ${task.process.key.pid} has ended`)
      task.process = null
      this.#options.attachments?.forget(task)
    }
  }

  /** The lease is over. */
  forget(task: HostTask): void {
    this.#ending.delete(task)
    if (task.start.isLease) this.#options.attachments?.forget(task)
  }

  close(): void {
    this.#options.attachments?.close()
  }

  #kill(task: HostTask, onGone: () => void): void {
    const { clock } = this.#options
    if (task.isEnded) return
    if (task.process?.isAlive !== true) return onGone()
    try {
      task.process.signal('SIGKILL')
    } catch (error) {
      this.#options.onNote(task, errorText(error))
    }
    clock.at(clock.now() + POLL_MS, () => this.#kill(task, onGone), RANK_DEVICE)
  }

  #attach(
    { taskId, attempt }: LeaseRef,
    process: AttachedProcess,
  ): Readonly<Record<string, string>> | string {
    const { accelerator, find, uses } = this.#options
    const task = find(taskId, attempt)
    if (task === null || this.#ending.has(task)) return 'the lease has ended'
    if (task.process !== null) return 'the lease has a process already'
    task.attach(process)
    uses.began(task)
    return {
      ...accelerator.environment(task.gpus),
      HEADROOM_TASK_ID: taskId,
      HEADROOM_GPUS: task.gpus.join(','),
      HEADROOM_VRAM_MIB: String(task.start.vramMib),
    }
  }

  #detach({ taskId, attempt }: LeaseRef): string | null {
    const task = this.#options.find(taskId, attempt)
    if (task === null) return null
    // Otherwise it would stay stopped permanently.
    if (task.isMoving || !task.shouldRun) return 'the lease is being swapped out; try again'
    task.process = null
    return null
  }
}

/** Returns a probe for the accelerator before the task exists. */
function probeOf({ taskId, attempt }: LeaseRef, process: AttachedProcess): AcceleratedTask {
  return {
    taskId,
    attempt,
    gpus: [],
    vramMib: 0,
    processIds: () => [process.key.pid],
    suspend: () => Promise.resolve(),
    resume: () => Promise.resolve(),
  }
}
