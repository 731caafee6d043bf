import type { StartRefused } from '../../protocol/message-fields.ts'
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import type { Mib } from '../../protocol/units.ts'
import type { ContainerSpec } from './containers.ts'

/** How the command of a task ended; both null: unknown, its guard died without a report. */
export interface GuardExit {
  readonly code: number | null
  readonly signal: string | null
}

/** `ownGroup`: a group id of this attempt only, to which its control socket belongs. */
export interface TaskUser {
  readonly uid: number
  readonly gid: number
  readonly ownGroup?: number
}

/** Per-attempt resources. Null: it runs as the server's own user. */
export interface TaskPlace {
  readonly user: TaskUser | null
  /** Its working directory. Removed together with its output. */
  readonly folder: string
}

export interface GuardedTask {
  readonly taskId: string
  readonly attempt: number
  /** Opaque JSON that the server gave at launch. */
  readonly record: unknown
  /** The place at the launch; missing after a launch by an earlier version. */
  readonly place?: TaskPlace
  readonly state: 'running' | 'suspended' | 'ended'
  /** Set once it has ended; null then means that the outcome is not known. */
  readonly exit: GuardExit | null
  /** The guard suspended or killed it because of the lease deadline. */
  readonly didLeaseEnd: boolean
  /** Its stop was ordered, and it has not ended yet. */
  readonly isStopping?: true
  /** The guard signalled it on order before its command was over: the exit code is not a result. */
  readonly wasOrdered?: true
  /** The attempt was stopped by an order and never ran between SIGTERM and SIGKILL. */
  readonly neverRan?: true
  /** Before its command was over, the kernel killed a process because of the limit of memory. */
  readonly didReachMemoryLimit?: true
}

export interface LaunchSpec {
  readonly taskId: string
  readonly attempt: number
  readonly record: unknown
  readonly command: readonly string[]
  /**
   * The complete environment except HEADROOM_ATTEMPT, which is added and identifies what is left of a dead
   * guard's task.
   */
  readonly env: Readonly<Record<string, string>>
  /** The private folder of the attempt, in which the command starts. */
  readonly workingDirectory: string
  /** It starts here instead, in the file system of the container if it has one. */
  readonly cwd?: string
  /** null: the server's own user. */
  readonly user: TaskUser | null
  /** Kept with the attempt's record. */
  readonly place?: TaskPlace
  /** The lease may end it: policy fail or requeue, or its start is not acknowledged yet. */
  readonly isLeased: boolean
  /** Limit for both streams together; the oldest bytes are dropped first. */
  readonly maxOutputBytes: number
  /** It runs in a container, in the working directory of the image; absent: on the host. */
  readonly container?: ContainerSpec
  /** Absent: none. */
  readonly limits?: ResourceLimits
}

/** `offset`: of the first byte of `data`; larger than requested when older output was dropped. */
export interface OutputChunk {
  readonly offset: number
  readonly data: Buffer
  /** The task has ended and nothing comes after `data`. */
  readonly isEnded: boolean
}

/** An error text and its cause when nothing of the attempt is left. `imageDigest`: of its container. */
export type LaunchAnswer =
  | { readonly error: null; readonly imageDigest?: string }
  | { readonly error: string; readonly refused: StartRefused }

/**
 * Every task of a GPU server runs under a guard, a small process that outlives the server and enforces the
 * deadline of the run lease (protocol R4). This is the server's side of all guards. For an unknown attempt
 * calls without an answer do nothing, promises reject, and reads return null or nothing.
 */
export interface Guards {
  /**
   * Returns all guards found in the state folder, including ended ones that are not forgotten; called before
   * the first hello (R4).
   */
  adopt(): Promise<readonly GuardedTask[]>
  /**
   * Resolves once the command runs, or with why it does not; nothing of it is left then. A leased launch is
   * refused while the lease is over.
   */
  launch(spec: LaunchSpec): Promise<LaunchAnswer>
  /**
   * One write for all guards, which read it when their deadline comes: suspend at `untilMono`, kill at
   * `untilMono + lengthMs` (CLOCK_BOOTTIME ms). `untilMono - lengthMs` is the instant from which the lease
   * counts.
   */
  lease(untilMono: number, lengthMs: number): void
  /**
   * Sets whether the end of the lease affects it: false once `started` is acknowledged and its policy is
   * wait.
   */
  setLeased(taskId: string, attempt: number, isLeased: boolean): void
  /** Sends SIGSTOP to every process of the task; resolves when all of them are stopped. */
  suspend(taskId: string, attempt: number): Promise<void>
  /** Rejects while the lease is over for a leased attempt. */
  resume(taskId: string, attempt: number): Promise<void>
  /** Sends SIGKILL to all processes; the end is reported through `onExit`. */
  kill(taskId: string, attempt: number): void
  /**
   * Sends SIGTERM to every process, and SIGKILL to the rest after `graceMs`. The guard enforces that
   * deadline, even if this server ends; a later call can only shorten it. A suspended process handles the
   * signal once it is resumed. 0: the same as `kill`.
   */
  stop(taskId: string, attempt: number, graceMs: number): void
  /** Every listener is called once per attempt, when nothing of it is left. */
  onExit(listener: (task: GuardedTask) => void): void
  processIds(taskId: string, attempt: number): readonly number[]
  /** The folder of the guard of a living attempt; null: none lives. */
  folderOf(taskId: string, attempt: number): string | null
  /** For a task on the host that was started with such a limit. Throws the file system's error. */
  setMemoryLimit(taskId: string, attempt: number, mib: Mib): void
  readOutput(
    taskId: string,
    attempt: number,
    stream: 'stdout' | 'stderr',
    offset: number,
    maxBytes: number,
  ): Promise<OutputChunk | null>
  /** The record of an ended attempt is no longer needed. Its output is kept, bounded by count and bytes. */
  forget(taskId: string, attempt: number): void
  /** Closes the sockets; guards live on. */
  close(): void
}
