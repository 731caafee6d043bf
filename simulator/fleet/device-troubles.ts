/** Current faults of a simulated host's devices. */
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { HookFault } from '../scenario/fault.ts'
import type { SimulatedProcess } from './simulated-process.ts'

/** Observes which tasks run on a host: a process that is not frozen runs, whether or not it works. */
export interface RunWatcher {
  runs(taskId: string): void
  rests(taskId: string): void
}

type HostedProcess = Pick<SimulatedProcess, 'vramMib' | 'gpus' | 'isResident'>

/** How the swap hooks of tasks misbehave; null keeps everything. */
export interface HookTrouble {
  readonly kind: HookFault
  readonly keepsMib: Mib | null
}

export class DeviceTroubles {
  /** 1000: swaps take the time of the profile. */
  swapFactorPermille = 1000
  /** Host memory used by others. */
  hostShortMib: Mib = 0
  /** Swaps that took longer, and swap-outs without host memory. */
  slowedSwaps = 0
  refusedSwaps = 0
  hooks: HookTrouble | null = null
  /** Swap-outs of the driver after hooks had failed, and tasks whose hooks were given up. */
  fallbacks = 0
  hooksGivenUp = 0
  /** Calls of hooks that misbehaved. */
  readonly brokenHooks = new Map<HookFault, number>()
  readonly #lost = new Set<number>()

  get lostGpus(): ReadonlySet<number> {
    return this.#lost
  }

  lose(gpu: number): void {
    this.#lost.add(gpu)
  }

  find(gpu: number): void {
    this.#lost.delete(gpu)
  }

  /** How the hook that is called now misbehaves; null: it does not. */
  hookTrouble(): HookTrouble | null {
    const { hooks, brokenHooks } = this
    if (hooks !== null) brokenHooks.set(hooks.kind, (brokenHooks.get(hooks.kind) ?? 0) + 1)
    return hooks
  }

  slowed(ms: DurationMs): DurationMs {
    if (this.swapFactorPermille === 1000) return ms
    this.slowedSwaps += 1
    return Math.ceil((ms * this.swapFactorPermille) / 1000)
  }

  /** Returns whether the task may be swapped out, given the host memory in use. */
  hasHostRoom(
    { vramMib, gpus }: HostedProcess,
    beside: Iterable<HostedProcess>,
    { hostSwapMib }: { readonly hostSwapMib: Mib },
  ): boolean {
    if (this.hostShortMib === 0) return true
    let freeMib = hostSwapMib - this.hostShortMib
    for (const other of beside) if (!other.isResident) freeMib -= other.vramMib * other.gpus.length
    if (vramMib * gpus.length <= freeMib) return true
    this.refusedSwaps += 1
    return false
  }

  /** A GPU that has fallen off the bus has no free memory: readers find all of it in use. */
  seen(gpus: readonly GpuReport[]): readonly GpuReport[] {
    return gpus.map((gpu) => (this.#lost.has(gpu.index) ? { ...gpu, foreign_mib: gpu.physical_mib } : gpu))
  }
}
