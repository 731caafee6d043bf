import type { DurationMs, GpuMode, Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'

export interface LaunchRequest {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly vramMib: Mib
  readonly gpuMode: GpuMode
  readonly command: readonly string[] | null
}

/** How a launch ended: an error in words, or null and whether the task wants the GPU right away. */
export type Launched = { readonly error: string } | { readonly error: null; readonly wantsGpu: boolean }

/** `done`: as ordered. The others leave the task where it was. */
export type SwapOutcome = 'done' | 'woke_while_locked' | 'copy_failed' | 'no_vram' | 'no_host_memory'

/** What a device tells of its tasks, at any time. It is not called back inside a report. */
export interface DeviceListener {
  exited(taskId: string, attempt: number, exitCode: number | null, detail: string | null): void
  gpuWanted(taskId: string, attempt: number): void
  /** It has run dry; its last use was `idleMs` ago. */
  gpuUsed(taskId: string, attempt: number, idleMs: DurationMs): void
  allocationWanted(taskId: string, attempt: number, mib: Mib): void
}

/**
 * The GPUs of one host and the processes on them. The NVIDIA driver, plain processes, or a model of both.
 * Calls return at once; completions come through their callbacks, never inside the call. An attempt that the device does not know is
 * answered with `copy_failed`, and `stop` of it does nothing.
 */
export interface Device {
  /** As they are now, in the order of their indexes, from 0 without gaps. */
  gpus(): readonly GpuReport[]
  /** Reports go to the latest listener only. */
  observe(listener: DeviceListener): void
  launch(request: LaunchRequest, done: (launched: Launched) => void): void
  /** Moves all its bytes on all its GPUs to host memory and frees the VRAM. */
  suspend(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void
  /** Brings them back. */
  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void
  /** Stops it from running, its bytes stay where they are; the lease is over (R4). One that is being launched does not begin to run. */
  freeze(taskId: string, attempt: number): void
  thaw(taskId: string, attempt: number): void
  /** Ends it, frozen or not. Asked once; nothing of it is left when `exited` comes, or the launch has failed. */
  stop(taskId: string, attempt: number): void
  /** The held allocation goes through, or fails. Granted only while the task is resident. */
  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void
}
