/**
 * A model of one host's GPUs behind the `Device` port: compute shared in time slices, whole-task swaps at the profile's speed, one transfer
 * at a time per GPU. The work of each task comes from the scenario; nothing else is made up (docs/simulation-model.md).
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Device, DeviceListener, Launched, LaunchRequest, SwapOutcome } from '../../gpu-server/core/device.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import type { SimClock, TimerHandle } from '../virtual-clock.ts'
import { ComputeSharing } from './compute-sharing.ts'
import type { Runner } from './compute-sharing.ts'
import { swapDurationMs } from './swap-profiles.ts'
import { WorkCursor } from './work-cursor.ts'
import type { Workload } from './workload.ts'

interface Process extends Runner {
  readonly taskId: string
  readonly attempt: number
  readonly cursor: WorkCursor
  readonly startedAt: Instant
  vramMib: Mib
  isBusy: boolean
  isResident: boolean
  isFrozen: boolean
  /** It is among those that share its GPUs. */
  isRunning: boolean
  idleTimer: TimerHandle | null
  growthTimer: TimerHandle | null
  nextGrowth: number
  /** A step of growth that came due while it was not resident: it allocates once it is back. */
  isGrowthDue: boolean
}

export class SimulatedDevice implements Device {
  readonly #clock: SimClock
  readonly #node: ScenarioNode
  readonly #workload: Workload
  readonly #gpus: readonly GpuReport[]
  readonly #processes = new Map<string, Process>()
  readonly #sharing: ComputeSharing
  /** Until when each GPU's copy engine is taken. */
  readonly #transferUntil: Instant[]
  #listener: DeviceListener | null = null

  constructor(clock: SimClock, node: ScenarioNode, workload: Workload) {
    this.#clock = clock
    this.#node = node
    this.#workload = workload
    const indexes = Array.from({ length: node.gpuCount }, (_, index) => index)
    this.#gpus = indexes.map((index) => ({ index, model: node.gpu.model, physical_mib: node.gpu.vramMib, foreign_mib: 0 }))
    this.#sharing = new ComputeSharing(clock, node.gpuCount, node.gpu.efficiencyPermille)
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
      isRunning: false,
      leftUs: 0,
      mark: 0,
      timer: null,
      onDone: () => this.#stepDone(process),
      idleTimer: null,
      growthTimer: null,
      nextGrowth: 0,
      isGrowthDue: false,
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
        this.#growIfDue(process)
        return
      }
      this.#afterTransfer(process, 'out', () => done('done'))
    }
    if (beginsAt <= this.#clock.now()) copy()
    else this.#clock.at(beginsAt, copy, RANK_DEVICE)
  }

  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return this.#soon(() => done('copy_failed'))
    this.#afterTransfer(process, 'in', () => {
      process.isResident = true
      this.#share(process)
      done('done')
      this.#growIfDue(process)
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
      this.#share(process)
      return true
    }
    process.isBusy = false
    process.idleTimer = this.#clock.schedule(now + step.ms, () => this.#advance(process), RANK_DEVICE)
    return true
  }

  /** GPU work is done: it no longer shares. */
  #stepDone(process: Process): void {
    process.isRunning = false
    this.#advance(process)
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
    if (process.idleTimer !== null) process.idleTimer.fn = null
    if (process.growthTimer !== null) process.growthTimer.fn = null
    this.#listener?.exited(process.taskId, process.attempt, exitCode, detail)
  }

  // ── sharing ─────────────────────────────────────────────────────────────────

  /** Whether it runs may have changed. */
  #share(process: Process): void {
    const isRunning = process.isBusy && process.isResident && !process.isFrozen
    if (isRunning === process.isRunning) return
    process.isRunning = isRunning
    if (isRunning) this.#sharing.add(process)
    else this.#sharing.remove(process)
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
    const at = Math.max(this.#clock.now(), process.startedAt + step[0])
    const due = (): void => {
      process.isGrowthDue = true
      this.#growIfDue(process)
    }
    process.growthTimer = this.#clock.schedule(at, due, RANK_DEVICE)
  }

  /** Only a process that is in VRAM allocates. */
  #growIfDue(process: Process): void {
    if (!process.isGrowthDue || !process.isResident) return
    process.isGrowthDue = false
    const step = this.#workload.allocStepsOf(process.taskId)[process.nextGrowth++]
    if (step !== undefined) this.#listener?.allocationWanted(process.taskId, process.attempt, step[1])
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
