import type { StartRefused } from '../../protocol/messages.ts'

/** How the command of a task ended; both null: nobody knows, its guard died without a word. */
export interface GuardExit {
  readonly code: number | null
  readonly signal: string | null
}

/** `ownGroup`: a group id of this attempt alone, to which its control socket belongs. */
export interface TaskUser {
  readonly uid: number
  readonly gid: number
  readonly ownGroup?: number
}

/** What an attempt has for itself; null: it runs as the server's own user. */
export interface TaskPlace {
  readonly user: TaskUser | null
  /** Where it begins. Removed together with its output. */
  readonly folder: string
}

export interface GuardedTask {
  readonly taskId: string
  readonly attempt: number
  /** Opaque JSON that the server gave at launch. */
  readonly record: unknown
  /** As at the launch; missing after a launch by an earlier version. */
  readonly place?: TaskPlace
  readonly state: 'running' | 'suspended' | 'ended'
  /** Set once it has ended; null then means that nobody knows how. */
  readonly exit: GuardExit | null
  /** The guard suspended or killed it by its own deadline. */
  readonly didLeaseEnd: boolean
  /** It was told to stop, and has not ended yet. */
  readonly isStopping?: true
  /** The guard signalled it on order before its command was over: the exit code is no result. */
  readonly wasOrdered?: true
  /** By order, and it could not run between SIGTERM and SIGKILL. */
  readonly neverRan?: true
}

export interface LaunchSpec {
  readonly taskId: string
  readonly attempt: number
  readonly record: unknown
  readonly command: readonly string[]
  /**
   * All of its environment, and HEADROOM_ATTEMPT beside it, by which what is left of a dead guard's task is
   * found.
   */
  readonly env: Readonly<Record<string, string>>
  readonly workingDirectory: string
  /** null: the server's own. */
  readonly user: TaskUser | null
  /** Kept with the attempt's record. */
  readonly place?: TaskPlace
  /** The lease may end it: policy fail or requeue, or its start is not acknowledged yet. */
  readonly isLeased: boolean
  /** Bytes kept of both streams together; the oldest are dropped first. */
  readonly maxOutputBytes: number
}

/** `offset`: of the first byte of `data`, later than asked when older output was dropped. */
export interface OutputChunk {
  readonly offset: number
  readonly data: Buffer
  /** The task has ended and nothing comes after `data`. */
  readonly isEnded: boolean
}

/** An error in words when nothing of the attempt is left, and whose fault it is. */
export type LaunchAnswer =
  { readonly error: null } | { readonly error: string; readonly refused: StartRefused }

/**
 * Every task of a GPU server runs under a guard, a small process of its own that outlives the server and
 * holds the run lease's deadline (protocol R4). This is the server's side of all of them. An attempt that it
 * does not know: calls without an answer do nothing, promises are rejected, reads are null or empty.
 */
export interface Guards {
  /**
   * All guards found in the state folder, ended ones not yet forgotten included; before the first hello (R4).
   */
  adopt(): Promise<readonly GuardedTask[]>
  /**
   * Resolves once the command runs, or with why it does not; nothing of it is left then. Refused while the
   * lease is over for a leased one.
   */
  launch(spec: LaunchSpec): Promise<LaunchAnswer>
  /**
   * One write for all guards, which read it when their deadline comes: suspend at `untilMono`, kill at
   * `untilMono + lengthMs` (CLOCK_BOOTTIME ms). `untilMono - lengthMs` is the instant from which the lease
   * counts.
   */
  lease(untilMono: number, lengthMs: number): void
  /**
   * Whether the lease's end means something to it: no, once `started` is acknowledged and its policy is wait.
   */
  setLeased(taskId: string, attempt: number, isLeased: boolean): void
  /** SIGSTOP to every process of the task; resolves when all of them stand still. */
  suspend(taskId: string, attempt: number): Promise<void>
  /** Rejected while the lease is over for a leased one. */
  resume(taskId: string, attempt: number): Promise<void>
  /** SIGKILL to all of it; its end follows through `onExit`. */
  kill(taskId: string, attempt: number): void
  /**
   * SIGTERM to every process of it, and SIGKILL to what is left after `graceMs`. The guard holds that
   * deadline, whatever becomes of this server; a later call can only bring it nearer. What is suspended
   * handles the signal once it is resumed. 0: the same as `kill`.
   */
  stop(taskId: string, attempt: number, graceMs: number): void
  /** Reports go to every listener, once for each attempt, when nothing of it is left. */
  onExit(listener: (task: GuardedTask) => void): void
  processIds(taskId: string, attempt: number): readonly number[]
  readOutput(
    taskId: string,
    attempt: number,
    stream: 'stdout' | 'stderr',
    offset: number,
    maxBytes: number,
  ): Promise<OutputChunk | null>
  /** The record of an ended attempt is no longer needed. Its output is kept, bounded by count and bytes. */
  forget(taskId: string, attempt: number): void
  /** Lets go of the sockets; guards live on. */
  close(): void
}
