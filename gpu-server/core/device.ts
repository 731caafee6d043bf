import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { StartRefused, RequestCounts } from '../../protocol/message-fields.ts'
import type { GpuReport, LogStream } from '../../protocol/messages.ts'
import type { LimitsRecord } from '../../protocol/resource-limits.ts'
import type { AttemptStart } from './attempt-start.ts'
import type { KeptAttempt } from './storage.ts'

/** The end of the run lease ends the task until `setLeased` changes that (R4). */
export interface LaunchRequest {
  readonly start: AttemptStart
  /** Null for a lease. */
  readonly command: readonly string[] | null
  /** The image of the container in which it runs; absent: it runs on the host. */
  readonly image?: string
  /** The uploaded folder that its work folder contains at the start; absent: none. */
  readonly workdir?: { readonly sha256: string; readonly read: ReadBlobPart }
  /** The folder in which the command starts; absent: its work folder. */
  readonly cwd?: string
  /** Names of data folders of this host that it reads; absent: none. */
  readonly mounts?: readonly string[]
  /** Limits of its use of the host; absent: no limits. */
  readonly limits?: LimitsRecord
  /** Epoch of the controller that ordered the start. */
  readonly epoch?: number
  /** Environment variables of the task, in addition to the device's own. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Receives reports of its use instead of the listener, until `survivors` is called. This saves a lookup of
   * the attempt.
   */
  readonly onUse: UseReport
}

/** Requirements of a task for this host before its start. */
export interface PrepareRequest {
  readonly taskId: string
  /** The attempt that may start here. */
  readonly attempt: number
  readonly image?: string
  readonly workdir?: NonNullable<LaunchRequest['workdir']>
}

export interface PrepareProgress {
  readonly bytesDone: number
  /** Null: not known. */
  readonly bytesTotal: number | null
}

/** Null: everything is here. */
export type Prepared = { readonly error: string; readonly refused?: StartRefused | undefined } | null

/** Bytes of an uploaded file in base64, from the requested offset on, and the size of the whole. */
export interface BlobPart {
  readonly data: string
  readonly bytes: number
}

/** Reads a part of what the task uploaded. Null: no answer, the next try may get one. */
export type ReadBlobPart = (
  sha256: string,
  offset: number,
  done: (answer: BlobPart | { readonly refused: string } | null) => void,
) => void

/** The task wants the GPU, or became idle and last used the GPU `idleMs` ago. */
export type UseReport = (wantsGpu: boolean, idleMs: DurationMs) => void

/**
 * How a launch ended: an error text and its cause (absent: not known), or null and whether the task wants the
 * GPU at once.
 */
export type Launched =
  | { readonly error: string; readonly refused?: StartRefused | undefined }
  | {
      readonly error: null
      readonly wantsGpu: boolean
      /** Digest of the image in its registry; absent: none or unknown. */
      readonly imageDigest?: string
    }

/**
 * `done`: as ordered. The others leave the task where it was; `not_swappable`: the task can never be swapped
 * out.
 */
export type SwapOutcome =
  'done' | 'woke_while_locked' | 'copy_failed' | 'no_vram' | 'no_host_memory' | 'not_swappable'

/** How an attempt was swapped out; absent: by the driver, which leaves nothing, and not wakeable. */
export interface LeftAs {
  /**
   * Until its swap-in the device reports `gpuWanted` when a request for the attempt arrives, and the attempt
   * has declared that requests are what wakes it.
   */
  readonly isWakeable?: boolean
  /** Its own hooks moved its bytes, and it runs. */
  readonly byHooks?: boolean
  /** What it keeps in VRAM on each GPU. */
  readonly residualMib?: Mib
  /** Why it cannot be swapped, in words; only with `not_swappable`. */
  readonly whyNot?: string
}
export type Suspended = (outcome: SwapOutcome, left?: LeftAs) => void

/** How an attempt ended on the device. */
export interface AttemptEnd {
  /** Null: a signal, or not known. */
  readonly exitCode: number | null
  readonly detail: string | null
  /** The process ended before the device acted to end it; requires a known exit code or signal. */
  readonly didEndItself: boolean
  /** The device ended the process because the lease had ended (R4). */
  readonly didLeaseEnd: boolean
}

/** An attempt that an earlier process of this server launched, in its current state. */
export type Survivor = { readonly start: AttemptStart } & (
  | { readonly end: AttemptEnd }
  | {
      readonly end: null
      readonly residency: 'resident' | 'swapped_out' | 'unknown'
      /** The process does not run, though its bytes may be resident. */
      readonly isFrozen: boolean
      /** Its stop was ordered, with a grace that the device tracks. */
      readonly isStopping: boolean
      readonly wantsGpu: boolean
      readonly idleMs: DurationMs
      /** As `LeftAs.isWakeable`; absent: as the server knows it. */
      readonly isWakeable?: boolean
      /** The granted VRAM per GPU; null: the device does not remember. */
      readonly vramMib: Mib | null
      /** The total per GPU that its blocked allocation would reach. */
      readonly heldMib: Mib | null
    }
)

/** Address of a declared port of a task for clients, or why it has none. */
export type PortAddress = { readonly target: number } & (
  { readonly address: string; readonly detail: null } | { readonly address: null; readonly detail: string }
)

/** Bytes of a task's output, from `offset` on. */
export interface OutputPart {
  readonly offset: number
  readonly base64: string
  readonly isEnded: boolean
}

/**
 * Receives reports from a device about its tasks, at any time. The listener must not call the device inside a
 * report.
 */
export interface DeviceListener {
  /** Nothing of the attempt is left. The device keeps the end until `forget`. */
  exited(taskId: string, attempt: number, end: AttemptEnd): void
  gpuWanted(taskId: string, attempt: number): void
  /** The task became idle; its last GPU use was `idleMs` ago. */
  gpuUsed(taskId: string, attempt: number, idleMs: DurationMs): void
  allocationWanted(taskId: string, attempt: number, mib: Mib): void
  /** Measured free VRAM of this GPU; once a second where the device can measure. */
  freeMeasured(gpu: number, freeMib: Mib): void
  /**
   * A task that is out by its hooks took VRAM back, was told to leave it again, and still has `mib` on each
   * of its GPUs. Until now the device counted it as foreign. Returns true if it counts as the task's rest.
   */
  restStays(taskId: string, attempt: number, mib: Mib): boolean
}

/**
 * The GPUs of one host and the processes on them: the NVIDIA driver, plain processes, or a model of both.
 * Calls return at once; completions arrive through their callbacks, never inside the call. For an unknown
 * attempt the outcome is `copy_failed`, and `stop` does nothing.
 */
export interface Device {
  /** The current GPUs, in the order of their indexes, from 0 without gaps. */
  gpus(): readonly GpuReport[]
  /** Requests that were refused because their tasks are out. Absent: none ever are. */
  requestCounts?(): RequestCounts
  /** Reports go to the latest listener only. */
  observe(listener: DeviceListener): void
  /**
   * Returns what is left of attempts that an earlier process launched, including ended ones that were not
   * forgotten. A swap in progress is over, or is undone. Called once, before anything else.
   * @param known what the server knows about living attempts: a device has no other trace of a lease, and may
   * be unable to tell where the bytes are
   */
  survivors(known: readonly KeptAttempt[]): readonly Survivor[]
  /**
   * Gets what the attempt needs before its launch, without a process and without VRAM. The launch of the same
   * attempt uses it. Absent: the launch gets it. Not kept across a restart.
   */
  prepare?(
    request: PrepareRequest,
    onProgress: (progress: PrepareProgress) => void,
    done: (prepared: Prepared) => void,
  ): void
  /** Ends it, and removes what only this attempt could use. */
  unprepare?(taskId: string, attempt: number): void
  /** Reports which of these images the host has; absent: not known. */
  imagesHere?(images: readonly string[], done: (here: readonly string[]) => void): void
  launch(request: LaunchRequest, done: (launched: Launched) => void): void
  /** Moves all bytes of the attempt to host memory and frees its VRAM. */
  suspend(taskId: string, attempt: number, done: Suspended): void
  /** Moves them back. */
  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void
  /**
   * Stops its processes and leaves its bytes in place, because the lease is over (R4). A launch in progress
   * does not start to run.
   */
  freeze(taskId: string, attempt: number): void
  thaw(taskId: string, attempt: number): void
  /**
   * Extends the run lease to `until`. The device enforces it without a process of this server: at the end it
   * freezes leased attempts, and after another `lengthMs` it ends them.
   */
  lease(until: Instant, lengthMs: DurationMs): void
  /** Sets whether the end of the run lease affects the attempt. */
  setLeased(taskId: string, attempt: number, isLeased: boolean): void
  /**
   * Ends the attempt, frozen or not: SIGTERM to every process, SIGKILL to the rest after `graceMs`, even if
   * this server ends. A stopped process handles the signal once it runs. 0: SIGKILL at once. A later call can
   * only shorten the time. Nothing of the attempt is left when `exited` is reported, or the launch has
   * failed.
   */
  stop(taskId: string, attempt: number, graceMs: DurationMs): void
  /** Its end is durable in this server. */
  forget(taskId: string, attempt: number): void
  /** Lets the blocked allocation succeed or fail. Granted only while the task is resident. */
  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void
  /**
   * Lets a process of the host become the process of this lease within a minute, by a token with this
   * SHA-256. Returns the path of the socket that it uses; null: not possible.
   */
  expectProcess?(taskId: string, attempt: number, tokenSha256: string): string | null
  /** Returns the addresses of an attempt that clients reach elsewhere; absent or empty: its own ports. */
  addressesOf?(taskId: string, attempt: number): readonly PortAddress[]
  /** Null: no such attempt, or no output is kept. */
  readOutput(
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
    done: (part: OutputPart | null) => void,
  ): void
}
