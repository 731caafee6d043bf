/**
 * Carries out the steps by which tasks leave VRAM and return: orders to their hooks, measurements, and the
 * driver's copies.
 */
import type { GpuReport } from '../../protocol/messages.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'
import {
  deadlineFor,
  hasMovedOut,
  mayTellAgain,
  resumeByHooks,
  resumeSteps,
  surplusMib,
  suspendAgain,
  suspendSteps,
  undoSteps,
} from '../core/swap-steps.ts'
import type { Answer, Step, Steps, Suspension, SwapGround } from '../core/swap-steps.ts'
import type { AcceleratedTask, Accelerator, TaskUse } from './accelerator.ts'
import type { HookCalls } from './hook-calls.ts'
import { HostTask } from './host-task.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface SwapMethodsOptions {
  readonly accelerator: Accelerator
  readonly hooks: HookCalls
  /** Monotonic. */
  readonly now: () => DurationMs
  readonly onNote: (task: HostTask, why: string) => void
  /** A task that was told again to leave VRAM still has this much on each GPU. True: that is its rest now. */
  readonly restStays: (task: HostTask, mib: Mib) => boolean
}

export class SwapMethods {
  readonly #options: SwapMethodsOptions
  /** Surplus by GPU. */
  readonly #surplusMib = new Map<number, Mib>()
  /** Orders in progress that no swap asked for; the next swap waits for them. */
  readonly #again = new Map<HostTask, Promise<unknown>>()
  /** Tasks of an earlier server whose suspend may be in progress, until this time. */
  readonly #found = new Map<HostTask, DurationMs>()

  readonly #whyNot = new WeakMap<HostTask, string>()

  constructor(options: SwapMethodsOptions) {
    this.#options = options
  }

  async suspend(task: HostTask): Promise<Suspension> {
    this.#found.delete(task)
    await this.#again.get(task)
    return this.#carryOut(task, suspendSteps(task, this.#groundOf(task)))
  }

  /** Why the driver cannot swap the task, as found at its last suspend; undefined: not asked, or it can. */
  whyNotSwappable(task: HostTask): string | undefined {
    return this.#whyNot.get(task)
  }

  async resume(task: HostTask): Promise<SwapOutcome> {
    const ground = this.#groundOf(task)
    await this.#again.get(task)
    const outcome = await this.#carryOut(task, resumeSteps(task, ground))
    // An order that was not answered in time may have been carried out since.
    if (outcome === 'done' && task.mayBeSuspended) void this.#carryOut(task, resumeByHooks(task, ground))
    return outcome
  }

  /**
   * An earlier server may have told the task to suspend, and no server waits for the end: if its data leaves
   * within the time of such an order, it is told to resume.
   */
  undo(task: HostTask): void {
    this.#found.set(task, this.#options.now() + deadlineFor(task))
    this.#undo(task)
  }

  /** Notes what tasks use although they said that they had moved it out. */
  sampled(uses: ReadonlyMap<AcceleratedTask, TaskUse>): void {
    this.#surplusMib.clear()
    for (const [task, { usedMib }] of uses) {
      if (!(task instanceof HostTask) || task.isMoving) continue
      if (task.isResident) {
        this.#sampledFound(task, usedMib)
        continue
      }
      task.gpus.forEach((gpu, place) => {
        const mib = surplusMib(task, usedMib[place] ?? 0)
        if (mayTellAgain(task, usedMib[place] ?? 0, this.#options.now())) this.#tellAgain(task)
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

  #sampledFound(task: HostTask, usedMib: TaskUse['usedMib']): void {
    const until = this.#found.get(task)
    if (until === undefined || this.#again.has(task)) return
    if (task.isEnded || this.#options.now() > until) this.#found.delete(task)
    else if (usedMib.every((mib) => mib !== null && hasMovedOut(task, mib))) this.#undo(task)
  }

  #undo(task: HostTask): void {
    const undone = this.#carryOut(task, undoSteps(task, this.#groundOf(task)))
    this.#begin(task, undone)
    void undone.then(
      (isDone) => isDone && this.#found.delete(task),
      () => undefined,
    )
  }

  #tellAgain(task: HostTask): void {
    const told = this.#carryOut(task, suspendAgain(task, this.#groundOf(task)))
    this.#begin(
      task,
      told.then((mib) => mib !== null && this.#keep(task, mib)),
    )
  }

  #begin(task: HostTask, order: Promise<unknown>): void {
    const settled = order
      .catch((error: unknown) => this.#options.onNote(task, errorText(error)))
      .then(() => this.#again.delete(task))
    this.#again.set(task, settled)
  }

  #keep(task: HostTask, mib: Mib): void {
    const before = task.residualMib
    const changeBy = (change: Mib): void => {
      task.residualMib += change
      for (const gpu of task.gpus)
        this.#surplusMib.set(gpu, Math.max(0, (this.#surplusMib.get(gpu) ?? 0) - change))
    }
    changeBy(mib - before)
    if (!this.#options.restStays(task, mib)) changeBy(before - mib)
  }

  #groundOf(task: HostTask): SwapGround {
    return { now: this.#options.now, note: (why) => this.#options.onNote(task, why) }
  }

  async #carryOut<Result>(task: HostTask, steps: Steps<Result>): Promise<Result> {
    let next = steps.next()
    while (next.done !== true) next = steps.next(await this.#answerTo(next.value, task))
    return next.value
  }

  async #answerTo(step: Step, task: HostTask): Promise<Answer> {
    const { accelerator, hooks } = this.#options
    switch (step.kind) {
      case 'order':
        return hooks.call(task, step.order, step.withinMs)
      case 'measure':
        return this.#measure(task)
      case 'wait':
        await new Promise((resolve) => setTimeout(resolve, step.ms))
        return undefined
      case 'driver_out':
        return this.#suspendByDriver(task)
      case 'driver_in':
        return accelerator.swapIn(task)
      case 'has_free':
        return accelerator.hasFree(task.gpus, step.mib)
    }
  }

  async #suspendByDriver(task: HostTask): Promise<SwapOutcome> {
    const why = await this.#options.accelerator.whyNotSwappable(task)
    if (why === null) return this.#options.accelerator.swapOut(task)
    this.#options.onNote(task, `it stays in VRAM: ${why}`)
    this.#whyNot.set(task, why)
    return 'not_swappable'
  }

  async #measure(task: HostTask): Promise<Mib | null> {
    const used = await this.#options.accelerator.usedMib(task)
    return used.some((mib) => mib === null) ? null : Math.max(0, ...used.map((mib) => mib ?? 0))
  }
}
