/**
 * A model of one host's GPUs behind the `Device` port: compute shared in time slices, whole-task swaps at the profile's speed, one transfer
 * at a time per GPU. The work of each task comes from the scenario; nothing else is made up (docs/simulation-model.md).
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { CancelTimer } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Device, DeviceListener, Launched, LaunchRequest, SwapOutcome } from '../../gpu-server/core/device.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import { swapDurationMs } from './swap-profiles.ts'
import { WorkCursor } from './work-cursor.ts'
import type { Workload } from './workload.ts'

interface Process {
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly cursor: WorkCursor
  readonly startedAt: Instant
  vramMib: Mib
  isBusy: boolean
  isResident: boolean
  isFrozen: boolean
  isCopying: boolean
  /** It counts among those that share its GPUs. */
  isRunning: boolean
  /** GPU work left in this busy step, microseconds on an idle GPU. */
  leftUs: number
  settledAt: Instant
  /** How many microseconds of its work are done in `divisor` microseconds of time: η(k) permille over 1000 × k, at its slowest GPU. */
  rate: number
  divisor: number
  idleSince: Instant
  cancel: CancelTimer | null
  cancelGrowth: CancelTimer | null
  nextGrowth: number
}

export class SimulatedDevice implements Device {
  readonly #clock: VirtualClock
  readonly #node: ScenarioNode
  readonly #workload: Workload
  readonly #gpus: readonly GpuReport[]
  readonly #processes = new Map<string, Process>()
  /** Those that run on each GPU. */
  readonly #running: Process[][]
  /** Until when each GPU's copy engine is taken. */
  readonly #transferUntil: Instant[]
  #listener: DeviceListener | null = null

  constructor(clock: VirtualClock, node: ScenarioNode, workload: Workload) {
    this.#clock = clock
    this.#node = node
    this.#workload = workload
    const indexes = Array.from({ length: node.gpuCount }, (_, index) => index)
    this.#gpus = indexes.map((index) => ({ index, model: node.gpu.model, physical_mib: node.gpu.vramMib, foreign_mib: 0 }))
    this.#running = indexes.map(() => [])
    this.#transferUntil = indexes.map(() => 0)
  }

  gpus(): readonly GpuReport[] {
    return this.#gpus
  }

  observe(listener: DeviceListener): void {
    this.#listener = listener
  }

  launch(request: LaunchRequest, done: (launched: Launched) => void): void {
    const now = this.#clock.now()
    const process: Process = {
      taskId: request.taskId,
      attempt: request.attempt,
      gpus: request.gpus,
      cursor: new WorkCursor(this.#workload.workOf(request.taskId)),
      startedAt: now,
      vramMib: request.vramMib,
      isBusy: false,
      isResident: true,
      isFrozen: false,
      isCopying: false,
      isRunning: false,
      leftUs: 0,
      settledAt: now,
      rate: 0,
      divisor: 1,
      idleSince: now,
      cancel: null,
      cancelGrowth: null,
      nextGrowth: 0,
    }
    this.#processes.set(request.taskId, process)
    this.#clock.soon(() => {
      if (!this.#isAlive(process)) return
      const isOver = !this.#begin(process)
      done({ error: null, wantsGpu: process.isBusy })
      if (isOver) this.#exit(process, 0, null)
      else this.#planGrowth(process)
    }, RANK_DEVICE)
  }

  suspend(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return this.#soon(() => done('copy_failed'))
    // Locked: it does not run from here on. The copy begins when the copy engine is free.
    const beginsAt = this.#transferStart(process)
    const wasBusy = process.isBusy
    process.isResident = false
    this.#share(process)
    const copy = (): void => {
      if (!this.#isAlive(process)) return
      if (process.isBusy && !wasBusy) {
        process.isResident = true
        this.#share(process)
        done('woke_while_locked')
        return
      }
      process.isCopying = true
      this.#afterTransfer(process, 'out', () => {
        process.isCopying = false
        done('done')
      })
    }
    if (beginsAt <= this.#clock.now()) copy()
    else this.#clock.at(beginsAt, copy, RANK_DEVICE)
  }

  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return this.#soon(() => done('copy_failed'))
    process.isCopying = true
    this.#afterTransfer(process, 'in', () => {
      process.isCopying = false
      process.isResident = true
      this.#share(process)
      done('done')
    })
  }

  freeze(taskId: string, attempt: number): void {
    this.#setFrozen(taskId, attempt, true)
  }

  thaw(taskId: string, attempt: number): void {
    this.#setFrozen(taskId, attempt, false)
  }

  stop(taskId: string, attempt: number): void {
    const process = this.#find(taskId, attempt)
    if (process !== null) this.#soon(() => this.#isAlive(process) && this.#exit(process, null, 'stopped'))
  }

  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return
    if (isGranted) {
      process.vramMib = mib
      this.#planGrowth(process)
    } else this.#soon(() => this.#isAlive(process) && this.#exit(process, 1, 'the allocation was refused'))
  }

  // ── phases ──────────────────────────────────────────────────────────────────

  /** Takes the next step of its work; false when there is none left. */
  #begin(process: Process): boolean {
    const now = this.#clock.now()
    const step = process.cursor.step(now - process.startedAt)
    if (step.kind === 'done') return false
    if (step.kind === 'busy') {
      process.isBusy = true
      process.leftUs = step.ms * 1000
      process.settledAt = now
      this.#share(process)
      return true
    }
    process.isBusy = false
    process.idleSince = now
    this.#share(process)
    process.cancel = this.#clock.at(now + step.ms, () => this.#advance(process), RANK_DEVICE)
    return true
  }

  /** A step is over: the next one, and what there is to tell about it. */
  #advance(process: Process): void {
    const wasBusy = process.isBusy
    if (!this.#begin(process)) {
      this.#exit(process, 0, null)
      return
    }
    if (process.isBusy === wasBusy) return
    if (process.isBusy) this.#listener?.gpuWanted(process.taskId, process.attempt)
    else this.#listener?.gpuUsed(process.taskId, process.attempt, 0)
  }

  #exit(process: Process, exitCode: number | null, detail: string | null): void {
    this.#processes.delete(process.taskId)
    process.isBusy = false
    this.#share(process)
    process.cancel?.()
    process.cancelGrowth?.()
    this.#listener?.exited(process.taskId, process.attempt, exitCode, detail)
  }

  // ── sharing ─────────────────────────────────────────────────────────────────

  /** Whether it runs may have changed: everybody on its GPUs is settled and gets a new rate. */
  #share(process: Process): void {
    const isRunning = process.isBusy && process.isResident && !process.isFrozen
    if (isRunning === process.isRunning) {
      if (isRunning) this.#repace(process)
      return
    }
    const now = this.#clock.now()
    if (!isRunning) this.#settle(process, now)
    for (const gpu of process.gpus) for (const other of this.#running[gpu] as Process[]) this.#settle(other, now)
    process.isRunning = isRunning
    process.settledAt = now
    for (const gpu of process.gpus) {
      const running = this.#running[gpu] as Process[]
      if (isRunning) running.push(process)
      else running.splice(running.indexOf(process), 1)
    }
    if (!isRunning && process.isBusy) {
      process.cancel?.()
      process.cancel = null
    }
    for (const gpu of process.gpus) for (const other of this.#running[gpu] as Process[]) this.#repace(other)
  }

  #settle(process: Process, now: Instant): void {
    if (!process.isRunning) return
    const us = (now - process.settledAt) * 1000
    if (us > 0) process.leftUs = Math.max(0, process.leftUs - Math.floor((us * process.rate) / process.divisor))
    process.settledAt = now
  }

  /** Sets its rate by its slowest GPU and the timer for the end of its step. */
  #repace(process: Process): void {
    let rate = 1000
    let divisor = 0
    for (const gpu of process.gpus) {
      const count = (this.#running[gpu] as Process[]).length
      const efficiency = this.#efficiencyPermille(count)
      const slower = 1000 * count
      if (divisor === 0 || efficiency * divisor < rate * slower) [rate, divisor] = [efficiency, slower]
    }
    process.rate = rate
    process.divisor = divisor
    process.cancel?.()
    const ms = Math.ceil(Math.ceil((process.leftUs * divisor) / rate) / 1000)
    process.cancel = this.#clock.at(this.#clock.now() + ms, () => this.#stepDone(process), RANK_DEVICE)
  }

  #stepDone(process: Process): void {
    this.#settle(process, this.#clock.now())
    if (process.leftUs > 0) this.#repace(process)
    else this.#advance(process)
  }

  #efficiencyPermille(count: number): number {
    const table = this.#node.gpu.efficiencyPermille
    return table[Math.min(count, table.length) - 1] ?? 1000
  }

  // ── transfers ───────────────────────────────────────────────────────────────

  #transferStart(process: Process): Instant {
    let at = this.#clock.now()
    for (const gpu of process.gpus) at = Math.max(at, this.#transferUntil[gpu] as Instant)
    return at
  }

  /** Its bytes on all its GPUs move at once, each GPU's over its own link; the links are taken until then. */
  #afterTransfer(process: Process, direction: 'out' | 'in', then: () => void): void {
    const endsAt = this.#transferStart(process) + swapDurationMs(this.#node.gpu.swap, direction, process.vramMib)
    for (const gpu of process.gpus) this.#transferUntil[gpu] = endsAt
    this.#clock.at(endsAt, () => this.#isAlive(process) && then(), RANK_DEVICE)
  }

  // ── growth ──────────────────────────────────────────────────────────────────

  #planGrowth(process: Process): void {
    const steps = this.#workload.allocStepsOf(process.taskId)
    while (process.nextGrowth < steps.length && (steps[process.nextGrowth] as readonly [DurationMs, Mib])[1] <= process.vramMib) {
      process.nextGrowth += 1
    }
    const step = steps[process.nextGrowth]
    if (step === undefined) return
    process.nextGrowth += 1
    const at = Math.max(this.#clock.now(), process.startedAt + step[0])
    process.cancelGrowth = this.#clock.at(at, () => this.#listener?.allocationWanted(process.taskId, process.attempt, step[1]), RANK_DEVICE)
  }

  // ── small things ────────────────────────────────────────────────────────────

  #setFrozen(taskId: string, attempt: number, isFrozen: boolean): void {
    const process = this.#find(taskId, attempt)
    if (process === null || process.isFrozen === isFrozen) return
    process.isFrozen = isFrozen
    this.#share(process)
  }

  #find(taskId: string, attempt: number): Process | null {
    const process = this.#processes.get(taskId)
    return process?.attempt === attempt ? process : null
  }

  #isAlive(process: Process): boolean {
    return this.#processes.get(process.taskId) === process
  }

  #soon(fn: () => void): void {
    this.#clock.soon(fn, RANK_DEVICE)
  }
}
