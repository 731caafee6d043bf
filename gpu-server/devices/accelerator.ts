import type { GpuReport } from '../../protocol/messages.ts'
import type { Mib, DeviceKind } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'

/** An attempt with memory on GPUs of this host. The same object from launch to end. */
export interface AcceleratedTask {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  /** Per GPU, as currently granted. */
  readonly vramMib: Mib
  /**
   * On declared GPUs: a file of the task whose length says what it uses, 1 KiB for each MiB. Null or missing:
   * what it declared.
   */
  readonly vramFile?: string | null
  /**
   * All processes of the task, including descendants; empty for a lease or an ended task.
   */
  processIds(): readonly number[]
  /** Sends SIGSTOP to all of them; resolves when the guard has done so. */
  suspend(): Promise<void>
  /** Sends SIGCONT to all of them. */
  resume(): Promise<void>
}

export interface TaskUse {
  /** MiB in use on each GPU, in the order of the task's `gpus`; null: unknown. */
  readonly usedMib: readonly (Mib | null)[]
  /** A kernel ran, or CPU time was used, since the last sample; null: unknown. */
  readonly isBusy: boolean | null
}

/** The accelerator cannot be used, or no longer; the message is one line and says what to change. */
export class AcceleratorFault extends Error {
  override readonly name = 'AcceleratorFault'
}

/**
 * GPUs of one host, real or declared: inventory, memory, swaps. The guards manage processes. Swaps of one
 * task never overlap; those of different tasks may. Only `open` rejects; later errors are outcomes, or null
 * for unknown.
 */
export interface Accelerator {
  readonly kind: DeviceKind
  /** Tasks can signal that they want the GPU while they are swapped out. */
  readonly signalsWanted: boolean
  /** Rejects with AcceleratorFault (one line). */
  open(): Promise<void>
  /** As last sampled; in the order of their indexes, from 0 without gaps. */
  gpus(): readonly GpuReport[]
  /** Returns the environment variables of a task on these GPUs. */
  environment(gpus: readonly number[]): Readonly<Record<string, string>>
  /**
   * Returns the ids by which a container engine passes these GPUs, and no others, to a container; none for
   * declared GPUs. Throws when one is not known.
   */
  containerDevices(gpus: readonly number[]): readonly string[]
  /**
   * Why this task cannot be swapped (MIG, managed memory, several processes with NCCL, driver too old), or
   * null.
   */
  whyNotSwappable(task: AcceleratedTask): Promise<string | null>
  swapOut(task: AcceleratedTask): Promise<SwapOutcome>
  swapIn(task: AcceleratedTask): Promise<SwapOutcome>
  /** Returns its current use on each of its GPUs, as the device measures it; null: unknown. */
  usedMib(task: AcceleratedTask): Promise<readonly (Mib | null)[]>
  /** False if one of these GPUs is known to have less free. */
  hasFree(gpus: readonly number[], mib: Mib): Promise<boolean>
  /** Returns the residency of a task; called for each task that outlived a server process. */
  residencyOf(task: AcceleratedTask): Promise<'resident' | 'swapped_out' | 'unknown'>
  /** Called once a second. `freeMib` by GPU index; null: unknown. */
  sample(tasks: readonly AcceleratedTask[]): Promise<{
    readonly uses: ReadonlyMap<AcceleratedTask, TaskUse>
    readonly freeMib: readonly (Mib | null)[]
  }>
  close(): Promise<void>
}
