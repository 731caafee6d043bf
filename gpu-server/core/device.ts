import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { GpuReport, LogStream, StartRefused } from '../../protocol/messages.ts'
import type { AttemptStart } from './attempt-start.ts'
import type { KeptAttempt } from './storage.ts'

/** Until `setLeased` says otherwise the end of the run lease ends it (R4). */
export interface LaunchRequest {
  readonly start: AttemptStart
  /** Null for a lease. */
  readonly command: readonly string[] | null
  /**
   * Where its use may be told instead of to the listener, until somebody asks for survivors: nobody has to
   * look up whose it is.
   */
  readonly onUse: UseReport
}

/** It wants the GPU, or has run dry and its last use was `idleMs` ago. */
export type UseReport = (wantsGpu: boolean, idleMs: DurationMs) => void

/**
 * How a launch ended: an error in words and whose fault it is (left out: not known), or null and whether the
 * task wants the GPU right away.
 */
export type Launched =
  | { readonly error: string; readonly refused?: StartRefused | undefined }
  | { readonly error: null; readonly wantsGpu: boolean }

/** `done`: as ordered. The others leave the task where it was; `not_swappable`: it never will leave. */
export type SwapOutcome =
  'done' | 'woke_while_locked' | 'copy_failed' | 'no_vram' | 'no_host_memory' | 'not_swappable'

/** How an attempt ended on the device. */
export interface AttemptEnd {
  /** Null: a signal, or nobody knows. */
  readonly exitCode: number | null
  readonly detail: string | null
  /** The process ended before anything was done to end it; only a known exit code or signal can say so. */
  readonly didEndItself: boolean
  /** The device ended it by itself, because the lease had ended (R4). */
  readonly didLeaseEnd: boolean
}

/** An attempt that an earlier process of this server launched, as it is found now. */
export type Survivor = { readonly start: AttemptStart } & (
  | { readonly end: AttemptEnd }
  | {
      readonly end: null
      readonly residency: 'resident' | 'swapped_out' | 'unknown'
      /** It does not run, though it may be resident. */
      readonly isFrozen: boolean
      /** It was told to stop, with a grace that the device counts on. */
      readonly isStopping: boolean
      readonly wantsGpu: boolean
      readonly idleMs: DurationMs
      /** What it has been granted, on each GPU; null: the device does not remember. */
      readonly vramMib: Mib | null
      /** It holds an allocation that would take the task to this on each GPU. */
      readonly heldMib: Mib | null
    }
)

/** Bytes of a task's output, from `offset` on. */
export interface OutputPart {
  readonly offset: number
  readonly base64: string
  readonly isEnded: boolean
}

/** What a device tells of its tasks, at any time. It is not called back inside a report. */
export interface DeviceListener {
  /** Nothing of it is left. The device keeps the end until `forget`. */
  exited(taskId: string, attempt: number, end: AttemptEnd): void
  gpuWanted(taskId: string, attempt: number): void
  /** It has run dry; its last use was `idleMs` ago. */
  gpuUsed(taskId: string, attempt: number, idleMs: DurationMs): void
  allocationWanted(taskId: string, attempt: number, mib: Mib): void
  /** So much is free on this GPU by the device's own measure; once a second where it can measure. */
  freeMeasured(gpu: number, freeMib: Mib): void
}

/**
 * The GPUs of one host and the processes on them. The NVIDIA driver, plain processes, or a model of both.
 * Calls return at once; completions come through their callbacks, never inside the call. An attempt that the
 * device does not know is answered with `copy_failed`, and `stop` of it does nothing.
 */
export interface Device {
  /** As they are now, in the order of their indexes, from 0 without gaps. */
  gpus(): readonly GpuReport[]
  /** Reports go to the latest listener only. */
  observe(listener: DeviceListener): void
  /**
   * What is left of attempts that an earlier process launched, ended ones that were not forgotten included. A
   * swap that was under way is over, or is taken back. Asked once, before anything else is.
   * @param known what the server knows to live here: a device has no other trace of a lease, and may not be
   *   able to tell where bytes are
   */
  survivors(known: readonly KeptAttempt[]): readonly Survivor[]
  launch(request: LaunchRequest, done: (launched: Launched) => void): void
  /** Moves all its bytes on all its GPUs to host memory and frees the VRAM. */
  suspend(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void
  /** Brings them back. */
  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void
  /**
   * Stops it from running, its bytes stay where they are; the lease is over (R4). One that is being launched
   * does not begin to run.
   */
  freeze(taskId: string, attempt: number): void
  thaw(taskId: string, attempt: number): void
  /**
   * The run lease lasts until then, and no process of this server is needed to keep it: the device itself
   * freezes what is leased at its end, and ends it after another `lengthMs`.
   */
  lease(until: Instant, lengthMs: DurationMs): void
  /** The end of the run lease means nothing to it from here on. */
  setLeased(taskId: string, attempt: number, isLeased: boolean): void
  /**
   * Ends it, frozen or not: SIGTERM to every process, SIGKILL to what is left after `graceMs`, whatever
   * becomes of this server. What does not run meanwhile handles the signal once it runs. 0: SIGKILL at once.
   * A later call can only bring the end nearer. Nothing of it is left when `exited` comes, or the launch has
   * failed.
   */
  stop(taskId: string, attempt: number, graceMs: DurationMs): void
  /** Its end is durable here. */
  forget(taskId: string, attempt: number): void
  /** The held allocation goes through, or fails. Granted only while the task is resident. */
  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void
  /** Null: no such attempt, or nothing is kept of it. */
  readOutput(
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
    done: (part: OutputPart | null) => void,
  ): void
}
