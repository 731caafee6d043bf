import type { GpuReport } from '../../../protocol/messages.ts'
import type { DurationMs, Mib } from '../../../protocol/units.ts'
import type { SwapOutcome } from '../../core/device.ts'
import { type AcceleratedTask, type Accelerator, AcceleratorFault, type TaskUse } from '../accelerator.ts'
import type { ArenaPlace } from './swap-arena.ts'
import { attribute } from './attribution.ts'
import { Checkpoints, CHECKPOINT_TIMEOUTS, type CheckpointTimeouts } from './checkpoints.ts'
import { HelperFault } from './helper-messages.ts'
import { HelperProcess } from './helper-process.ts'
import type { KernelFiles } from './host-memory.ts'
import { processFacts } from './process-facts.ts'
import { smiSnapshot } from './smi.ts'
import type { HostSnapshot } from './snapshot.ts'
import { Swaps } from './swaps.ts'
import { whyNotDriver } from './why-not.ts'

export interface NvidiaOptions {
  readonly nvmlLibrary?: string
  readonly cudaLibrary?: string
  readonly smiProgram?: string
  /** The module to import as koffi. */
  readonly ffiModule?: string
  readonly files?: KernelFiles
  /** Pinned memory for swapped-out tasks. Without it the driver keeps their data. */
  readonly arena?: ArenaPlace
  readonly snapshotMs?: DurationMs
  readonly checkpointTimeouts?: Partial<CheckpointTimeouts>
  /** Receives one line for the log: what went wrong and what was done. */
  readonly onNote?: (line: string) => void
}

/** Longer than reading all GPUs of a host takes. */
const SNAPSHOT_MS = 10_000

type Samples = Awaited<ReturnType<Accelerator['sample']>>

/** The GPUs of this host through the NVIDIA driver. */
export class NvidiaAccelerator implements Accelerator {
  readonly kind = 'nvidia'
  /** An unmodified process cannot signal while the driver holds it. */
  readonly signalsWanted = false
  readonly #options: NvidiaOptions
  readonly #files: KernelFiles
  readonly #nvml: HelperProcess
  readonly #cuda: HelperProcess
  readonly #checkpoints: Checkpoints
  readonly #swaps: Swaps
  readonly #hasArena: boolean
  #usesSmi = false
  #reports: readonly GpuReport[] = []
  #uuids: readonly (string | null)[] = []
  #isClosed = false
  #driver = ''
  /** Processes of tasks at the last sample. */
  #owned: ReadonlySet<number> = new Set()
  #lastNote: string | null = null

  constructor(options: NvidiaOptions = {}) {
    this.#options = options
    this.#files = options.files ?? { proc: '/proc', cgroup: '/sys/fs/cgroup' }
    const helper = {
      ffiModule: options.ffiModule ?? 'koffi',
      proc: this.#files.proc,
      onNote: (line: string) => this.#note(line),
    }
    this.#nvml = new HelperProcess({
      ...helper,
      role: 'nvml',
      library: options.nvmlLibrary ?? 'libnvidia-ml.so.1',
    })
    this.#cuda = new HelperProcess({
      ...helper,
      role: 'cuda',
      library: options.cudaLibrary ?? 'libcuda.so.1',
      ...(options.arena === undefined ? {} : { arena: options.arena }),
    })
    this.#hasArena = (options.arena?.bytes ?? 0) > 0
    this.#checkpoints = new Checkpoints(this.#cuda, { ...CHECKPOINT_TIMEOUTS, ...options.checkpointTimeouts })
    this.#swaps = new Swaps({
      checkpoints: this.#checkpoints,
      snapshot: () => this.#snapshot('snapshot'),
      whyNotHost: () => this.#whyNotHost(),
      files: this.#files,
      hasArena: this.#hasArena,
      onNote: (line) => this.#note(line),
    })
  }

  /** Example: `570.86.15`; empty before `open`. */
  get driver(): string {
    return this.#driver
  }

  async open(): Promise<void> {
    const snapshot = await this.#firstSnapshot()
    this.#isClosed = false
    if (snapshot.gpus.length === 0) throw new AcceleratorFault('the NVIDIA driver is loaded but lists no GPU')
    this.#driver = snapshot.driver
    this.#uuids = snapshot.gpus.map(({ uuid }) => uuid)
    this.#report(snapshot, [])
    for (const fault of snapshot.gpus.flatMap(({ faults }) => faults)) this.#note(fault)
    // Attaching takes seconds: started now, awaited by the first use.
    void this.#whyNotHost().then(async (why) => {
      if (this.#isClosed) return
      if (why !== null) return this.#note(`tasks cannot be swapped: ${why}`)
      const fault = this.#hasArena ? await this.#checkpoints.openArena() : null
      if (fault !== null) this.#note(`tasks are swapped without the swap arena: ${fault.message}`)
    })
  }

  gpus(): readonly GpuReport[] {
    return this.#reports
  }

  /** By UUID, so that a GPU that disappears does not shift the others. No GPUs: none are visible. */
  environment(gpus: readonly number[]): Readonly<Record<string, string>> {
    return {
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      CUDA_VISIBLE_DEVICES: gpus.map((gpu) => this.#uuids[gpu] ?? String(gpu)).join(','),
    }
  }

  containerDevices(gpus: readonly number[]): readonly string[] {
    return gpus.map((gpu) => {
      const uuid = this.#uuids[gpu]
      if (uuid === undefined || uuid === null) throw new Error(`the UUID of GPU ${gpu} is not known`)
      return uuid
    })
  }

  whyNotSwappable(task: AcceleratedTask): Promise<string | null> {
    return this.#swaps.whyNot(task)
  }

  swapOut(task: AcceleratedTask): Promise<SwapOutcome> {
    return this.#swaps.out(task)
  }

  swapIn(task: AcceleratedTask): Promise<SwapOutcome> {
    return this.#swaps.in(task)
  }

  residencyOf(task: AcceleratedTask): Promise<'resident' | 'swapped_out' | 'unknown'> {
    return this.#swaps.residency(task)
  }

  async usedMib(task: AcceleratedTask): Promise<readonly (Mib | null)[]> {
    const snapshot = await this.#snapshot('snapshot')
    if (snapshot === null) return unknownUse(task).usedMib
    const { uses } = attribute(snapshot, this.#owners([task]), this.#isHere, new Set())
    return (uses.get(task) ?? unknownUse(task)).usedMib
  }

  async hasFree(gpus: readonly number[], mib: Mib): Promise<boolean> {
    const snapshot = await this.#snapshot('snapshot')
    return gpus.every((gpu) => (snapshot?.gpus[gpu]?.memory?.freeMib ?? Infinity) >= mib)
  }

  async sample(tasks: readonly AcceleratedTask[]): Promise<Samples> {
    const snapshot = await this.#snapshot('sample')
    if (snapshot === null)
      return {
        uses: new Map(tasks.map((task) => [task, unknownUse(task)])),
        freeMib: this.#reports.map(() => null),
      }
    const owners = this.#owners(tasks)
    const { uses, foreignMib } = attribute(snapshot, owners, this.#isHere, this.#departed())
    this.#owned = new Set(owners.flatMap(({ processes }) => processes.flat()))
    this.#report(snapshot, foreignMib)
    return { uses, freeMib: snapshot.gpus.map(({ memory }) => memory?.freeMib ?? null) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#nvml.close(), this.#cuda.close()])
  }

  readonly #isHere = (pid: number): boolean => processFacts(this.#files.proc, pid) !== null

  /** Read after the driver's list, so that every listed process already exists here. */
  #owners(tasks: readonly AcceleratedTask[]) {
    return tasks.map((task) => ({
      task,
      gpus: task.gpus,
      processes: task.processIds().map((pid) => processFacts(this.#files.proc, pid)?.pids ?? [pid]),
    }))
  }

  #departed(): ReadonlySet<number> {
    return new Set([...this.#owned].filter((pid) => processFacts(this.#files.proc, pid) === null))
  }

  #report(snapshot: HostSnapshot, foreignMib: readonly Mib[]): void {
    this.#reports = snapshot.gpus.map(({ index, model, memory }) => ({
      index,
      model,
      physical_mib: memory?.physicalMib ?? 0,
      foreign_mib: foreignMib[index] ?? 0,
    }))
  }

  async #whyNotHost(): Promise<string | null> {
    return whyNotDriver(this.#driver) ?? (await this.#checkpoints.attach())?.message ?? null
  }

  async #firstSnapshot(): Promise<HostSnapshot> {
    try {
      return await this.#read('snapshot')
    } catch (fault) {
      if (!(fault instanceof HelperFault)) throw fault
      if (fault.kind === 'driver' || fault.kind === 'timeout' || fault.kind === 'lost')
        throw await this.#cannotOpen(fault.message, fault)
      this.#usesSmi = true
      try {
        const snapshot = await this.#read('snapshot')
        this.#note(`reading GPUs with nvidia-smi instead: ${fault.message}`)
        return snapshot
      } catch (second) {
        if (!(second instanceof HelperFault)) throw second
        throw await this.#cannotOpen(`${fault.message}; and ${second.message}`, second)
      }
    }
  }

  async #cannotOpen(why: string, cause: HelperFault): Promise<AcceleratorFault> {
    await this.close()
    return new AcceleratorFault(`no NVIDIA GPU can be read: ${why}`, { cause })
  }

  /** Returns null, and logs a line, when the driver gives no answer. */
  async #snapshot(op: 'snapshot' | 'sample'): Promise<HostSnapshot | null> {
    try {
      return await this.#read(op)
    } catch (fault) {
      if (!(fault instanceof HelperFault)) throw fault
      this.#note(fault.message)
      return null
    }
  }

  async #read(op: 'snapshot' | 'sample'): Promise<HostSnapshot> {
    const timeoutMs = this.#options.snapshotMs ?? SNAPSHOT_MS
    if (this.#usesSmi) return smiSnapshot(this.#options.smiProgram ?? 'nvidia-smi', timeoutMs)
    return (await this.#nvml.request(op, {}, timeoutMs)) as HostSnapshot
  }

  /** Logs repeated trouble once. */
  #note(line: string): void {
    if (line === this.#lastNote) return
    this.#lastNote = line
    this.#options.onNote?.(line)
  }
}

function unknownUse(task: AcceleratedTask): TaskUse {
  return { usedMib: task.gpus.map(() => null), isBusy: null }
}
