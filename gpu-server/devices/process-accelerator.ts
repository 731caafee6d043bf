/**
 * Declared GPUs without hardware: tasks are plain processes, memory is their declared demand, a swap is
 * SIGSTOP or SIGCONT plus the time that a copy would take. For laptops and continuous integration; all other
 * code is the same as with the NVIDIA driver.
 */
import { lstatSync, readFileSync } from 'node:fs'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'
import type { AcceleratedTask, Accelerator, TaskUse } from './accelerator.ts'

/** One declared GPU. */
export interface DeclaredGpu {
  readonly model: string
  readonly physicalMib: Mib
  /** Duration of copying this amount, one transfer at a time. */
  readonly swapMs: (direction: 'out' | 'in', mib: Mib) => DurationMs
}

export interface ProcessAcceleratorOptions {
  readonly gpus: readonly DeclaredGpu[]
  /** Monotonic. */
  readonly now: () => DurationMs
  readonly wait: (ms: DurationMs) => Promise<void>
  /** CPU time of a process in ms, all threads; null when it is gone. */
  readonly cpuMsOf?: (pid: number) => number | null
}

/** A task counts as busy when it used at least this share of one CPU since the last sample, in permille. */
const BUSY_FROM_PERMILLE = 50
/** Unit of CPU time in /proc (proc_pid_stat(5), USER_HZ). */
const MS_PER_TICK = 10
const STOPPED = 'T'
/** Unit of the file in which a task declares its VRAM use. */
const BYTES_PER_MIB = 1_024

export class ProcessAccelerator implements Accelerator {
  readonly kind = 'process'
  /**
   * Not every stopped task has a process that signals on its socket, so the controller probes by swapping it
   * in.
   */
  readonly signalsWanted = false
  readonly #options: ProcessAcceleratorOptions
  readonly #reports: readonly GpuReport[]
  readonly #cpuMsOf: (pid: number) => number | null
  /** Resolves when all requested transfers of the GPU are over. */
  readonly #transfers: Promise<void>[]
  readonly #away = new Set<string>()
  /** CPU time and instant of the last sample. */
  readonly #lastCpu = new Map<string, { readonly cpuMs: number; readonly at: DurationMs }>()

  constructor(options: ProcessAcceleratorOptions) {
    this.#options = options
    this.#reports = options.gpus.map(({ model, physicalMib }, index) => ({
      index,
      model,
      physical_mib: physicalMib,
      foreign_mib: 0,
    }))
    this.#cpuMsOf = options.cpuMsOf ?? cpuMsOf
    this.#transfers = options.gpus.map(() => Promise.resolve())
  }

  open(): Promise<void> {
    return Promise.resolve()
  }

  gpus(): readonly GpuReport[] {
    return this.#reports
  }

  /** Names the declared GPUs and hides real ones from CUDA programs. */
  environment(gpus: readonly number[]): Readonly<Record<string, string>> {
    return { HEADROOM_GPUS: gpus.join(','), CUDA_VISIBLE_DEVICES: '' }
  }

  containerDevices(): readonly string[] {
    return []
  }

  whyNotSwappable(): Promise<null> {
    return Promise.resolve(null)
  }

  /** Stops the task first, as the driver locks first; then the transfer time passes. */
  async swapOut(task: AcceleratedTask): Promise<SwapOutcome> {
    try {
      await task.suspend()
    } catch {
      return 'copy_failed'
    }
    await this.#transfer(task, 'out')
    this.#away.add(keyOf(task))
    return 'done'
  }

  async swapIn(task: AcceleratedTask): Promise<SwapOutcome> {
    await this.#transfer(task, 'in')
    try {
      await task.resume()
    } catch {
      return 'copy_failed'
    }
    this.#away.delete(keyOf(task))
    return 'done'
  }

  usedMib(task: AcceleratedTask): Promise<readonly Mib[]> {
    const mib = this.#usedMib(task)
    return Promise.resolve(task.gpus.map(() => mib))
  }

  /** Declared memory is what the server's ledger says. */
  hasFree(): Promise<boolean> {
    return Promise.resolve(true)
  }

  /**
   * A running task is resident. A stopped task may be out, or frozen at the end of its lease: declared memory
   * leaves no trace.
   */
  residencyOf(task: AcceleratedTask): Promise<'resident' | 'unknown'> {
    const states = task.processIds().map(stateOf)
    return Promise.resolve(
      states.some((state) => state !== STOPPED && state !== null) ? 'resident' : 'unknown',
    )
  }

  sample(tasks: readonly AcceleratedTask[]): Promise<{
    readonly uses: ReadonlyMap<AcceleratedTask, TaskUse>
    readonly freeMib: readonly (Mib | null)[]
  }> {
    const uses = new Map<AcceleratedTask, TaskUse>()
    for (const task of tasks) {
      const mib = this.#usedMib(task)
      uses.set(task, { usedMib: task.gpus.map(() => mib), isBusy: this.#isBusy(task) })
    }
    this.#forgetOthers(tasks)
    // Declared memory cannot be measured.
    return Promise.resolve({ uses, freeMib: this.#reports.map(() => null) })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** Returns the use in its file, or its declared VRAM. The driver's method leaves no residual VRAM. */
  #usedMib(task: AcceleratedTask): Mib {
    return this.#away.has(keyOf(task)) ? 0 : (statedMib(task) ?? task.vramMib)
  }

  /**
   * Moves its bytes on all its GPUs at the same time, each over its own link; a link carries one transfer at
   * a time.
   */
  #transfer(task: AcceleratedTask, direction: 'out' | 'in'): Promise<void> {
    const before = Promise.all(task.gpus.map((gpu) => this.#transfers[gpu] ?? Promise.resolve()))
    const takesMs = Math.max(
      0,
      ...task.gpus.map((gpu) => this.#options.gpus[gpu]?.swapMs(direction, task.vramMib) ?? 0),
    )
    const over = before.then(() => this.#options.wait(takesMs))
    for (const gpu of task.gpus) this.#transfers[gpu] = over
    return over
  }

  /** Null at its first sample, and for a task without a process. */
  #isBusy(task: AcceleratedTask): boolean | null {
    const pids = task.processIds()
    if (pids.length === 0) return null
    const at = this.#options.now()
    const cpuMs = pids.reduce((sum, pid) => sum + (this.#cpuMsOf(pid) ?? 0), 0)
    const before = this.#lastCpu.get(keyOf(task))
    this.#lastCpu.set(keyOf(task), { cpuMs, at })
    if (before === undefined || at <= before.at) return null
    return (cpuMs - before.cpuMs) * 1000 >= BUSY_FROM_PERMILLE * (at - before.at)
  }

  #forgetOthers(tasks: readonly AcceleratedTask[]): void {
    const known = new Set(tasks.map(keyOf))
    for (const key of this.#lastCpu.keys()) if (!known.has(key)) this.#lastCpu.delete(key)
    for (const key of this.#away) if (!known.has(key)) this.#away.delete(key)
  }
}

/** 1 KiB for each MiB; null: the task has no such file. A link says nothing about the task. */
function statedMib({ vramFile = null }: AcceleratedTask): Mib | null {
  if (vramFile === null) return null
  try {
    const about = lstatSync(vramFile)
    return about.isFile() ? Math.min(MAX_VRAM_MIB, Math.ceil(about.size / BYTES_PER_MIB)) : null
  } catch {
    return null
  }
}

function keyOf({ taskId, attempt }: AcceleratedTask): string {
  return `${attempt}/${taskId}`
}

/**
 * proc_pid_stat(5): utime and stime are fields 14 and 15, counted after the name in parentheses, which may
 * contain anything.
 */
function cpuMsOf(pid: number): number | null {
  const fields = statOf(pid)
  return fields === null ? null : (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
}

/** `T` while it is stopped; null when it is gone. */
function stateOf(pid: number): string | null {
  return statOf(pid)?.[0] ?? null
}

/** Returns the fields from the third on: state, parent, … */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}
