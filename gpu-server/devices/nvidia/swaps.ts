import type { Mib } from '../../../protocol/units.ts'
import type { SwapOutcome } from '../../core/device.ts'
import type { AcceleratedTask } from '../accelerator.ts'
import type { Checkpoints } from './checkpoints.ts'
import { CUDA_NOT_READY, CUDA_NOT_SUPPORTED, CUDA_OUT_OF_MEMORY } from './cuda-codes.ts'
import { type CudaProcess, cudaProcesses, held } from './cuda-processes.ts'
import { hostMemoryLeft, type KernelFiles } from './host-memory.ts'
import { processFacts } from './process-facts.ts'
import type { HostSnapshot } from './snapshot.ts'
import { KeyQueue } from './key-queue.ts'
import { whyNotGpus, whyNotProcesses } from './why-not.ts'

/** Host memory that must stay free after a copy. */
export const HOST_MARGIN_MIB: Mib = 512
/** A recreated context may need a little more than before. */
export const RESTORE_MARGIN_MIB: Mib = 64

export interface SwapParts {
  readonly checkpoints: Checkpoints
  /** The current snapshot; null when the driver gives none. */
  readonly snapshot: () => Promise<HostSnapshot | null>
  /** Null, or why nothing can be checkpointed on this host. */
  readonly whyNotHost: () => Promise<string | null>
  readonly files: KernelFiles
  /** Swap-outs use the swap arena where it has room. */
  readonly hasArena: boolean
  readonly onNote: (line: string) => void
}

/**
 * Swap-out and swap-in of whole tasks. A swapped-out task is stopped, because it would not wait for its bytes
 * in every call (still-process.ts). A task without GPU memory is only stopped, so that it cannot take any
 * while it counts as swapped out. One swap at a time per GPU: memory that was free is still free when it is
 * taken, except for foreign processes.
 */
export class Swaps {
  readonly #parts: SwapParts
  readonly #queue = new KeyQueue<number>()
  /** Swapped out by signals only. */
  readonly #parked = new WeakSet<AcceleratedTask>()
  /** MiB in use at the swap-out, by GPU index. */
  readonly #heldMib = new WeakMap<AcceleratedTask, ReadonlyMap<number, Mib>>()
  /**
   * Why the driver can never swap it: the driver does not support what the task does, or lost it in the
   * middle of a copy.
   */
  readonly #unswappable = new WeakMap<AcceleratedTask, string>()
  /** The driver is too old. */
  #isArenaMissing = false
  /** The driver swaps it by its own method only. */
  readonly #notForArena = new WeakSet<AcceleratedTask>()
  /** The driver does not undo a partial restore: a second restore always fails. */
  readonly #lost = new WeakSet<AcceleratedTask>()

  constructor(parts: SwapParts) {
    this.#parts = parts
  }

  out(task: AcceleratedTask): Promise<SwapOutcome> {
    return this.#queue.run(task.gpus, () => this.#out(task))
  }

  in(task: AcceleratedTask): Promise<SwapOutcome> {
    return this.#queue.run(task.gpus, () => this.#in(task))
  }

  async whyNot(task: AcceleratedTask): Promise<string | null> {
    const host = await this.#parts.whyNotHost()
    if (host !== null) return host
    const hopeless = this.#unswappable.get(task)
    if (hopeless !== undefined) return hopeless
    const snapshot = await this.#parts.snapshot()
    return whyNotTask(task, snapshot, await this.#cuda(task, snapshot))
  }

  /**
   * For a task of an earlier server process. A task that was held in the middle of a swap is released: its
   * bytes are on the GPU.
   */
  residency(task: AcceleratedTask): Promise<'resident' | 'swapped_out' | 'unknown'> {
    return this.#queue.run(task.gpus, async () => {
      const pids = task.processIds()
      if (pids.length === 0) return 'unknown'
      if ((await this.#parts.whyNotHost()) !== null) return 'unknown'
      const cuda = await this.#cuda(task, await this.#parts.snapshot())
      if (cuda.length === 0) return this.#parkedOrResident(task, pids)
      if (cuda.some(({ state }) => state === null || state === 'failed' || state === 'moving'))
        return 'unknown'
      if (cuda.some(({ state }) => state === 'checkpointed')) return 'swapped_out'
      for (const { pid, state } of cuda)
        if (state === 'locked') await this.#parts.checkpoints.act('unlock', pid, 0)
      return 'resident'
    })
  }

  #parkedOrResident(task: AcceleratedTask, pids: readonly number[]): 'resident' | 'swapped_out' {
    if (!pids.every((pid) => processFacts(this.#parts.files.proc, pid)?.isStopped ?? true)) return 'resident'
    this.#parked.add(task)
    return 'swapped_out'
  }

  async #out(task: AcceleratedTask): Promise<SwapOutcome> {
    const host = await this.#parts.whyNotHost()
    const never = host ?? this.#unswappable.get(task) ?? null
    if (never !== null) return this.#failed(task, never)
    const snapshot = await this.#parts.snapshot()
    if (snapshot === null) return this.#failed(task, 'the driver does not report which processes hold memory')
    const cuda = await this.#cuda(task, snapshot)
    const why = whyNotTask(task, snapshot, cuda)
    if (why !== null) return this.#failed(task, why)
    const [process] = cuda
    if (process === undefined) return this.#park(task)
    if (process.state === 'checkpointed') return 'done'
    if (process.isStopped)
      return this.#failed(task, `process ${process.pid} is stopped, and the driver cannot reach it`)
    return this.#copyOut(task, process)
  }

  /** The task has nothing to copy. It may wake between the check and the signal: then it stays. */
  async #park(task: AcceleratedTask): Promise<SwapOutcome> {
    await task.suspend()
    const snapshot = await this.#parts.snapshot()
    const hasWoken =
      snapshot === null ||
      task
        .processIds()
        .some((pid) => held(snapshot, processFacts(this.#parts.files.proc, pid)?.pids ?? [pid]).size > 0)
    if (hasWoken) {
      await task.resume()
      return snapshot === null ? 'copy_failed' : 'woke_while_locked'
    }
    this.#parked.add(task)
    return 'done'
  }

  async #copyOut(task: AcceleratedTask, process: CudaProcess): Promise<SwapOutcome> {
    const { pid, state, heldMib } = process
    const isStored = await this.#hasRoomInArena(task, process)
    if (!isStored && !this.#fitsIntoHost(task, process)) {
      await this.#release(task, pid)
      return 'no_host_memory'
    }
    const { checkpoints } = this.#parts
    const locked = state === 'locked' ? null : await checkpoints.act('lock', pid, 0)
    if (locked !== null) {
      this.#note(task, locked.message)
      if (isStored) await checkpoints.unreserve(pid)
      await this.#release(task, pid)
      return locked.code === CUDA_NOT_READY ? 'woke_while_locked' : 'copy_failed'
    }
    this.#heldMib.set(task, heldMib)
    const mib = mibOf(task, heldMib)
    if (!isStored) return this.#checkpoint(task, pid, mib)
    const stored = await checkpoints.act('store', pid, mib)
    if (stored === null) return this.#hold(task)
    this.#note(task, stored.message)
    switch (await checkpoints.state(pid)) {
      case 'checkpointed':
        return this.#hold(task)
      case 'locked':
        return this.#insteadOfArena(task, process)
      case 'moving':
        this.#lose(
          task,
          `process ${pid} is lost: the driver does not undo a swap-out that has begun; cancel it`,
        )
        return 'copy_failed'
      case 'running':
      case 'failed':
      case null:
        await this.#release(task, pid)
        return 'copy_failed'
    }
  }

  /** The driver does not give this process to the arena; nothing has been moved. */
  async #insteadOfArena(task: AcceleratedTask, process: CudaProcess): Promise<SwapOutcome> {
    this.#notForArena.add(task)
    if (this.#fitsIntoHost(task, process))
      return this.#checkpoint(task, process.pid, mibOf(task, process.heldMib))
    await this.#release(task, process.pid)
    return 'no_host_memory'
  }

  /** Swaps out by the driver's own method, into memory of the locked process. */
  async #checkpoint(task: AcceleratedTask, pid: number, mib: Mib): Promise<SwapOutcome> {
    const copied = await this.#parts.checkpoints.act('checkpoint', pid, mib)
    if (copied === null) return this.#hold(task)
    if (copied.code === CUDA_NOT_SUPPORTED || copied.kind === 'not_traceable')
      this.#unswappable.set(task, copied.message)
    this.#note(task, copied.message)
    await this.#release(task, pid)
    return copied.code === CUDA_OUT_OF_MEMORY ? 'no_host_memory' : 'copy_failed'
  }

  /**
   * The size of a process must be known, because a store that has begun cannot be undone. What the arena has
   * not taken yet comes out of the memory that the host and the helper have left.
   */
  async #hasRoomInArena(task: AcceleratedTask, { pid, heldMib }: CudaProcess): Promise<boolean> {
    const { hasArena, checkpoints, files } = this.#parts
    if (!hasArena || this.#isArenaMissing || heldMib.size === 0 || this.#notForArena.has(task)) return false
    const left = hostMemoryLeft(files, checkpoints.helperPid ?? pid) ?? 0
    const reserved = await checkpoints.reserve(
      pid,
      [...heldMib.values()],
      Math.max(0, left - HOST_MARGIN_MIB),
    )
    if (typeof reserved === 'boolean') return reserved
    this.#isArenaMissing = reserved.kind === 'function_missing'
    this.#note(task, `swapped without the swap arena: ${reserved.message}`)
    return false
  }

  /** Logs why not. */
  #fitsIntoHost(task: AcceleratedTask, { pid, heldMib }: CudaProcess): boolean {
    const mib = mibOf(task, heldMib)
    const left = hostMemoryLeft(this.#parts.files, pid)
    if (left !== null && left >= mib + HOST_MARGIN_MIB) return true
    this.#note(
      task,
      `swap-out of ${mib} MiB refused: ${left ?? 'unknown'} MiB of host memory left, ` +
        `${HOST_MARGIN_MIB} stay free`,
    )
    return false
  }

  /** Its CUDA process is already stopped; this stops the other processes of the task too. */
  async #hold(task: AcceleratedTask): Promise<'done'> {
    try {
      await task.suspend()
    } catch (cause) {
      this.#note(
        task,
        `its bytes are in host memory, and not all of its processes are stopped: ${String(cause)}`,
      )
    }
    return 'done'
  }

  /**
   * A guard may refuse while there is no run lease: the task then runs with the next lease; its bytes are in
   * place.
   */
  async #letRun(task: AcceleratedTask): Promise<'done'> {
    try {
      await task.resume()
    } catch (cause) {
      this.#note(task, `its bytes are in VRAM, and it does not run yet: ${String(cause)}`)
    }
    return 'done'
  }

  /** Handles a failure: a held process continues, and a process that the driver lost is reported. */
  async #release(task: AcceleratedTask, pid: number): Promise<void> {
    const state = await this.#parts.checkpoints.state(pid)
    if (state === 'locked') {
      const fault = await this.#parts.checkpoints.act('unlock', pid, 0)
      if (fault !== null) this.#note(task, `process ${pid} stays locked: ${fault.message}`)
    } else if (state === 'failed') {
      this.#lose(task, `process ${pid} is lost: the driver failed while it copied`)
    }
  }

  async #in(task: AcceleratedTask): Promise<SwapOutcome> {
    if (this.#lost.has(task)) return 'copy_failed'
    if (this.#parked.has(task)) {
      await task.resume()
      this.#parked.delete(task)
      return 'done'
    }
    if (task.processIds().length === 0) return this.#letRun(task)
    const host = await this.#parts.whyNotHost()
    if (host !== null) return this.#failed(task, host)
    const cuda = await this.#cuda(task, null)
    const unknown = cuda.find(({ state }) => state === null || state === 'failed' || state === 'moving')
    if (unknown !== undefined)
      return this.#failed(task, whyNotProcesses([unknown], 1) ?? `process ${unknown.pid} is being moved`)
    const copied = await this.#copyIn(
      task,
      cuda.filter(({ state }) => state === 'checkpointed').map(({ pid }) => pid),
    )
    if (copied !== 'done') return copied
    return this.#unlock(
      task,
      cuda.filter(({ state }) => state !== 'running').map(({ pid }) => pid),
    )
  }

  async #copyIn(task: AcceleratedTask, pids: readonly number[]): Promise<SwapOutcome> {
    if (pids.length === 0) return 'done'
    const needed = this.#heldMib.get(task) ?? new Map<number, Mib>()
    const mib = mibOf(task, needed)
    const short = whatIsShort(task, needed, await this.#parts.snapshot())
    if (short !== null) {
      this.#note(task, short)
      return 'no_vram'
    }
    for (const pid of pids) {
      const fault = await this.#parts.checkpoints.act('restore', pid, mib)
      if (fault === null) continue
      if (fault.code === CUDA_OUT_OF_MEMORY) {
        this.#lose(task, `process ${pid} is lost: the GPU ran out of memory while it was restored`)
      }
      return this.#failed(task, fault.message)
    }
    return 'done'
  }

  async #unlock(task: AcceleratedTask, pids: readonly number[]): Promise<SwapOutcome> {
    for (const pid of pids) {
      const fault = await this.#parts.checkpoints.act('unlock', pid, 0)
      if (fault !== null) return this.#failed(task, fault.message)
    }
    this.#heldMib.delete(task)
    return this.#letRun(task)
  }

  #cuda(task: AcceleratedTask, snapshot: HostSnapshot | null): Promise<readonly CudaProcess[]> {
    return cudaProcesses(task, this.#parts.checkpoints, snapshot, this.#parts.files.proc)
  }

  #lose(task: AcceleratedTask, why: string): void {
    this.#unswappable.set(task, why)
    this.#lost.add(task)
    this.#note(task, why)
  }

  #failed(task: AcceleratedTask, why: string): 'copy_failed' {
    this.#note(task, why)
    return 'copy_failed'
  }

  #note(task: AcceleratedTask, why: string): void {
    this.#parts.onNote(`task ${task.taskId} attempt ${task.attempt}: ${why}`)
  }
}

function whyNotTask(
  task: AcceleratedTask,
  snapshot: HostSnapshot | null,
  cuda: readonly CudaProcess[],
): string | null {
  return whyNotGpus(task.gpus.map((gpu) => snapshot?.gpus[gpu])) ?? whyNotProcesses(cuda, task.gpus.length)
}

/** Returns null when everything fits. Where the earlier use is unknown, the granted VRAM counts. */
function whatIsShort(
  task: AcceleratedTask,
  needed: ReadonlyMap<number, Mib>,
  snapshot: HostSnapshot | null,
): string | null {
  const onEach = needed.size > 0 ? [...needed] : task.gpus.map((gpu) => [gpu, task.vramMib] as const)
  for (const [gpu, mib] of onEach) {
    const free = snapshot?.gpus[gpu]?.memory?.freeMib ?? null
    if (free === null || free < mib + RESTORE_MARGIN_MIB) {
      return (
        `restore of ${mib} MiB refused: GPU ${gpu} has ${free ?? 'unknown'} MiB free; ` +
        `${RESTORE_MARGIN_MIB} MiB more than before are needed`
      )
    }
  }
  return null
}

/** Where the use is unknown, the granted VRAM counts. */
function mibOf(task: AcceleratedTask, heldMib: ReadonlyMap<number, Mib>): Mib {
  return heldMib.size > 0 ? sum(heldMib.values()) : task.vramMib * task.gpus.length
}

function sum(amounts: Iterable<Mib>): Mib {
  let total = 0
  for (const mib of amounts) total += mib
  return total
}
