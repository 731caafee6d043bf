/**
 * How the bytes of a task leave VRAM and return. The driver copies them while the task is stopped; a task
 * with hooks moves them itself when told, and keeps running. What a task says is checked against the device:
 * a suspend that leaves too much has failed. A task whose hooks fail falls back to the driver.
 */
import type { GpuReport } from '../../protocol/messages.ts'
import type { DurationMs, Mib, SwapMethod } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'
import type { AcceleratedTask, Accelerator, TaskUse } from './accelerator.ts'
import type { HookCalls } from './hook-calls.ts'
import { HostTask } from './host-task.ts'

export interface SwapMethodsOptions {
  readonly accelerator: Accelerator
  readonly hooks: HookCalls
  /** Monotonic. */
  readonly now: () => DurationMs
  readonly onNote: (task: HostTask, why: string) => void
}

export interface Suspension {
  readonly outcome: SwapOutcome
  readonly method: SwapMethod
  /** What stays in VRAM on each GPU. */
  readonly residualMib: Mib
}

/** A suspend may leave the larger of these: CUDA's own share, or a part of the demand. */
const MAX_RESIDUAL_MIB: Mib = 1_024
const MAX_RESIDUAL_PERCENT = 10
/** Deadline of an order: a fixed part, and the time at a rate below any measured one. */
const DEADLINE_FIXED_MS: DurationMs = 10_000
const DEADLINE_MAX_MS: DurationMs = 120_000
const SLOW_MIB_PER_S = 700
/** A driver frees memory a moment after the call. */
const MEASURE_AGAIN_MS: DurationMs = 100
const MEASURE_FOR_MS: DurationMs = 3_000
/** Hooks that failed this often within an hour are not called again. */
const MAX_FAILURES = 2
const FAILURES_COUNT_FOR_MS: DurationMs = 3_600_000

export class SwapMethods {
  readonly #options: SwapMethodsOptions
  readonly #failures = new WeakMap<HostTask, DurationMs[]>()
  /** By GPU. */
  readonly #surplusMib = new Map<number, Mib>()

  constructor(options: SwapMethodsOptions) {
    this.#options = options
  }

  async suspend(task: HostTask): Promise<Suspension> {
    const byHooks = task.staysRunning && !task.areHooksGivenUp ? await this.#suspendByHooks(task) : null
    const suspension: Suspension = byHooks ?? {
      outcome: await this.#suspendByDriver(task),
      method: 'driver',
      residualMib: 0,
    }
    if (suspension.outcome === 'done') {
      task.swappedOutBy = suspension.method
      task.residualMib = suspension.residualMib
    }
    return suspension
  }

  async resume(task: HostTask): Promise<SwapOutcome> {
    const { accelerator } = this.#options
    if (task.swappedOutBy === 'driver') {
      const outcome = await accelerator.swapIn(task)
      // An order that was not answered in time may have been carried out since.
      if (outcome === 'done' && task.mayBeSuspended) void this.#resumeByHooks(task)
      return outcome
    }
    if (!(await accelerator.hasFree(task.gpus, task.vramMib - task.residualMib))) return 'no_vram'
    return (await this.#resumeByHooks(task)) ? 'done' : 'copy_failed'
  }

  /**
   * A found task is in VRAM as far as known. If the device says otherwise, a suspend whose end no server saw
   * is undone; a task that was not told to suspend is not told to resume, which some cannot bear.
   */
  async undo(task: HostTask): Promise<void> {
    const mib = await this.#measure(task)
    if (mib !== null && mib <= mostResidualMib(task) && mib < task.vramMib) await this.#resumeByHooks(task)
  }

  /** Notes what tasks use although they said that they had moved it out. */
  sampled(uses: ReadonlyMap<AcceleratedTask, TaskUse>): void {
    this.#surplusMib.clear()
    for (const [task, { usedMib }] of uses) {
      if (!(task instanceof HostTask) || task.isResident || task.swappedOutBy === 'driver') continue
      task.gpus.forEach((gpu, place) => {
        const mib = (usedMib[place] ?? 0) - task.residualMib
        if (mib > 0) this.#surplusMib.set(gpu, (this.#surplusMib.get(gpu) ?? 0) + mib)
      })
    }
  }

  /** That counts as foreign: no other task may take it. */
  withSurplus(reports: readonly GpuReport[]): readonly GpuReport[] {
    if (this.#surplusMib.size === 0) return reports
    return reports.map((report) => ({
      ...report,
      foreign_mib: report.foreign_mib + (this.#surplusMib.get(report.index) ?? 0),
    }))
  }

  /** Null: its hooks failed, and the driver may try. */
  async #suspendByHooks(task: HostTask): Promise<Suspension | null> {
    const answer = await this.#options.hooks.call(task, 'suspend', deadlineFor(task))
    task.mayBeSuspended = answer.error === null || answer.isLate === true
    const method = task.start.swapMethod ?? 'hooks'
    if (task.isEnded) return { outcome: 'copy_failed', method, residualMib: 0 }
    if (answer.error !== null) return this.#failed(task, `its suspend hook failed: ${answer.error}`)
    const residualMib = (await this.#measureUntilSmall(task)) ?? answer.residentMib ?? 0
    if (residualMib <= mostResidualMib(task)) return { outcome: 'done', method, residualMib }
    await this.#resumeByHooks(task)
    return this.#failed(task, `its suspend hook left ${residualMib} MiB of ${task.vramMib} in VRAM`)
  }

  async #suspendByDriver(task: HostTask): Promise<SwapOutcome> {
    const why = await this.#options.accelerator.whyNotSwappable(task)
    if (why === null) return this.#options.accelerator.swapOut(task)
    this.#options.onNote(task, `it stays in VRAM: ${why}`)
    return 'not_swappable'
  }

  async #resumeByHooks(task: HostTask): Promise<boolean> {
    const answer = await this.#options.hooks.call(task, 'resume', deadlineFor(task))
    if (answer.error === null) task.mayBeSuspended = false
    else if (!task.isEnded) this.#options.onNote(task, `its resume hook failed: ${answer.error}`)
    return answer.error === null
  }

  #failed(task: HostTask, why: string): null {
    const now = this.#options.now()
    const times = [...(this.#failures.get(task) ?? []), now].filter((at) => at > now - FAILURES_COUNT_FOR_MS)
    this.#failures.set(task, times)
    task.areHooksGivenUp = times.length >= MAX_FAILURES
    const next = task.areHooksGivenUp ? 'The driver swaps it from now on' : 'The driver swaps it this time'
    this.#options.onNote(task, `${why}. ${next}`)
    return null
  }

  async #measureUntilSmall(task: HostTask): Promise<Mib | null> {
    const until = this.#options.now() + MEASURE_FOR_MS
    for (;;) {
      const mib = await this.#measure(task)
      if (mib === null || mib <= mostResidualMib(task) || this.#options.now() >= until) return mib
      await new Promise((resolve) => setTimeout(resolve, MEASURE_AGAIN_MS))
    }
  }

  /** The most that it uses on one of its GPUs; null: not known. */
  async #measure(task: HostTask): Promise<Mib | null> {
    const used = await this.#options.accelerator.usedMib(task)
    return used.some((mib) => mib === null) ? null : Math.max(0, ...used.map((mib) => mib ?? 0))
  }
}

function mostResidualMib({ vramMib }: HostTask): Mib {
  return Math.max(MAX_RESIDUAL_MIB, Math.floor((vramMib * MAX_RESIDUAL_PERCENT) / 100))
}

function deadlineFor({ vramMib }: HostTask): DurationMs {
  return Math.min(DEADLINE_MAX_MS, DEADLINE_FIXED_MS + Math.ceil((3 * vramMib * 1000) / SLOW_MIB_PER_S))
}
