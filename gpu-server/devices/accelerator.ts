import type { DeviceKind, GpuReport } from '../../protocol/messages.ts'
import type { Mib } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'

/** One attempt that holds memory on GPUs of this host. The same object from its launch to its end. */
export interface AcceleratedTask {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  /** On each GPU, as granted now. */
  readonly vramMib: Mib
  /**
   * Every process of the task, its grandchildren included; empty when there is none (a lease, or it has
   * ended).
   */
  processIds(): readonly number[]
  /** SIGSTOP to all of them; resolves when the guard has done so. */
  suspend(): Promise<void>
  /** SIGCONT to all of them. */
  resume(): Promise<void>
}

export interface TaskUse {
  /** MiB on each GPU in use now, in the order of the task's `gpus`; null: unknown. */
  readonly usedMib: readonly (Mib | null)[]
  /** A kernel ran, or CPU time was used, since the last sample; null: unknown. */
  readonly isBusy: boolean | null
}

/** It can't be used, or not any more; the message is one line and says what to change. */
export class AcceleratorFault extends Error {
  override readonly name = 'AcceleratorFault'
}

/**
 * GPUs of one host, real or declared: inventory, memory, swaps. Processes are the guards' business. Swaps of
 * one task never overlap; those of different tasks may. Only `open` rejects; whatever goes wrong later is an
 * outcome, or null for unknown.
 */
export interface Accelerator {
  readonly kind: DeviceKind
  /** Tasks on it can say that they want the GPU while they are swapped out. */
  readonly signalsWanted: boolean
  /** Rejects with AcceleratorFault (one line). */
  open(): Promise<void>
  /** As last sampled; in the order of their indexes, from 0 without gaps. */
  gpus(): readonly GpuReport[]
  /** What a task on these GPUs finds in its environment. */
  environment(gpus: readonly number[]): Readonly<Record<string, string>>
  /**
   * Why this task cannot be swapped (MIG, managed memory, several processes with NCCL, driver too old), or
   * null.
   */
  whyNotSwappable(task: AcceleratedTask): Promise<string | null>
  swapOut(task: AcceleratedTask): Promise<SwapOutcome>
  swapIn(task: AcceleratedTask): Promise<SwapOutcome>
  /** Where its bytes are; asked for each task that outlived a server process. */
  residencyOf(task: AcceleratedTask): Promise<'resident' | 'swapped_out' | 'unknown'>
  /** Once a second. `freeMib` by GPU index; null: unknown. */
  sample(tasks: readonly AcceleratedTask[]): Promise<{
    readonly uses: ReadonlyMap<AcceleratedTask, TaskUse>
    readonly freeMib: readonly (Mib | null)[]
  }>
  close(): Promise<void>
}
