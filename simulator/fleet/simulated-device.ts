/**
 * A model of one host's GPUs behind the `Device` port: compute shared in time slices, whole-task swaps at the
 * profile's speed, one transfer at a time per GPU. The work of each task comes from the scenario; nothing
 * else is invented (docs/simulation-model.md).
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type {
  Device,
  DeviceListener,
  Launched,
  LaunchRequest,
  Survivor,
  Suspended,
  SwapOutcome,
} from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { KeptAttempt } from '../../gpu-server/core/storage.ts'
import { staysRunning, surplusMib } from '../../gpu-server/core/swap-steps.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { ComputeSharing } from './compute-sharing.ts'
import { EndedAttempts } from './ended-attempts.ts'
import { DeviceTroubles, type RunWatcher } from './device-troubles.ts'
import { gpuReports } from './gpu-reports.ts'
import { newSimulatedProcess, workLeftOf } from './simulated-process.ts'
import type { InitialProcess, SimulatedProcess as Process, WorkLeft } from './simulated-process.ts'
import { ProcessStart } from './process-start.ts'
import { SimulatedImages } from './simulated-images.ts'
import { SimulatedSwaps } from './simulated-swaps.ts'
import type { WorkPlan } from './work-plan.ts'
import type { Workload } from './workload.ts'

/** Same interval as for a real device. */
const MEASURED_EVERY_MS: DurationMs = 1_000
const NEVER_RAN = 'it could not run within the stop grace, and ended without handling SIGTERM'

export class SimulatedDevice implements Device {
  readonly troubles = new DeviceTroubles()
  /**
   * GPU time for which swapped-out tasks had work without a signal, until their return; each of a task's GPUs
   * counts.
   */
  unsignalledWaitMs: DurationMs = 0
  /** Called when a process ends with its own exit code. */
  onOwnEnd: ((taskId: string) => void) | null = null
  /** Called when tasks use VRAM that they said they had left, or no longer do. */
  onSurplus: (() => void) | null = null
  readonly #clock: SimClock
  readonly #node: ScenarioNode
  readonly #workload: Workload
  #gpus: readonly GpuReport[]
  readonly #foreignMib = new Map<number, Mib>()
  readonly #runWatcher: RunWatcher | null
  readonly #processes = new Map<string, Process>()
  readonly #sharing: ComputeSharing<Process>
  readonly #swaps: SimulatedSwaps
  readonly #ended = new EndedAttempts()
  readonly #images: SimulatedImages
  /** The servers' clock: a lease ends in their time, however fast the device runs. */
  readonly #leaseClock: Clock
  #cancelLease: () => void = () => {}
  #listener: DeviceListener | null = null
  #isMeasuring = false
  readonly #onIdleOver = (process: Process): void => {
    if (process.isStill) process.isStepOver = true
    else this.#advance(process)
  }
  readonly #onGrowthDue = (process: Process): void => {
    process.isGrowthDue = true
    this.#growIfDue(process)
  }

  constructor(
    clock: SimClock,
    node: ScenarioNode,
    workload: Workload,
    leaseClock: Clock = clock,
    runWatcher: RunWatcher | null = null,
  ) {
    this.#clock = clock
    this.#runWatcher = runWatcher
    this.#leaseClock = leaseClock
    this.#node = node
    this.#workload = workload
    this.#gpus = gpuReports(this.#node, this.#foreignMib)
    this.#images = new SimulatedImages(clock, node.prepareMs ?? 0)
    this.#sharing = new ComputeSharing(clock, node.gpuCount, node.gpu.efficiencyPermille, (process) =>
      this.#stepDone(process),
    )
    this.#swaps = new SimulatedSwaps({
      clock,
      node,
      troubles: this.troubles,
      processes: () => this.#processes.values(),
      freeMib: (gpu) => this.#freeMib(gpu),
      share: (process) => this.#share(process),
      returned: (process) => this.#returned(process),
      stayed: (process) => this.#growIfDue(process),
      isOutAndRuns: (process) => this.#handleStop(process),
      exit: (process, detail) => this.#exit(process, 1, detail),
      surplusChanged: () => this.#surplusChanged(),
      restStays: (process, mib) => this.#restStays(process, mib),
    })
  }

  gpus(): readonly GpuReport[] {
    return this.#gpus
  }

  /**
   * Other processes use this amount of the GPU from now on. The server does not notice it by itself
   * (`measure`).
   */
  setForeign(gpu: number, mib: Mib): void {
    this.#foreignMib.set(gpu, mib)
    this.#look()
  }

  /** Reports the free VRAM of the GPU to the server, as a driver's measurement would. */
  measure(gpu: number, freeMib: Mib): void {
    this.#listener?.freeMeasured(gpu, freeMib)
  }

  observe(listener: DeviceListener): void {
    this.#listener = listener
  }

  /** The GPU falls off the bus: the driver ends every task that has memory on it or returns to it. */
  loseGpu(gpu: number): void {
    this.troubles.lose(gpu)
    this.#look()
    const there = [...this.#processes.values()].filter((process) => process.gpus.includes(gpu))
    for (const process of there) this.#exit(process, 1, `GPU ${gpu} has fallen off the bus`)
  }

  /** The GPU is back, empty. */
  findGpu(gpu: number): void {
    this.troubles.find(gpu)
    this.#look()
  }

  /** The host loses power: nothing is left, and nothing is reported. */
  powerOff(): void {
    this.#listener = null
    this.#cancelLease()
    for (const process of [...this.#processes.values()]) this.#exit(process, null, null)
    this.#ended.clear()
  }

  /** A swap in progress is reverted: its bytes are where they were. */
  survivors(known: readonly KeptAttempt[]): readonly Survivor[] {
    const outByHooks = new Map(
      known.flatMap(({ taskId, isOutByHooks = false, residualMib = 0 }) =>
        isOutByHooks ? [[taskId, residualMib] as const] : [],
      ),
    )
    const living = [...this.#processes.values()].map((process): Survivor => {
      // What hooks have moved looks resident to a driver; a task whose server does not know of it is told to
      // resume.
      if (process.swappedOutBy !== 'driver' && !outByHooks.has(process.taskId)) process.isInVram = true
      process.residualMib = outByHooks.get(process.taskId) ?? 0
      const { start, isInVram, vramMib, heldMib } = process
      const isFrozen = process.isFrozen || process.isSuspended
      process.onUse = null
      this.#swaps.adopted(process)
      if (process.isStill && isInVram) this.#soon(() => !process.isEnded && this.#wake(process))
      const isBusy = process.isBusy && !process.isStill
      const residency = isInVram ? 'resident' : 'swapped_out'
      const idleMs = isBusy ? 0 : Math.max(0, this.#clock.now() - process.lastUseAt)
      const isStopping = process.hasGrace
      return { start, end: null, residency, isFrozen, isStopping, wantsGpu: isBusy, idleMs, vramMib, heldMib }
    })
    return [...this.#ended.all(), ...living]
  }

  /** Adds a process that is present at the start of the world, before a server adopts it. */
  addInitialProcess(initial: InitialProcess): void {
    const { start, startedAt, isInVram, residualMib, lastUseAt, heldMib, doneUs } = initial
    const process = this.#newProcess(start, this.#workload.planOf(start.taskId, null), startedAt)
    process.isInVram = process.isResident = isInVram
    if (!isInVram) process.usedMib = process.residualMib = residualMib
    if (residualMib > 0) process.swappedOutBy = start.swapMethod ?? 'driver'
    process.isStill = !isInVram && process.swappedOutBy === 'driver' && this.#node.signalsWanted === false
    process.lastUseAt = lastUseAt
    process.heldMib = heldMib
    if (!this.#begin(process, doneUs)) this.#soon(() => !process.isEnded && this.#exit(process, 0, null))
    else if (heldMib === null) this.#planGrowth(process)
  }

  /** The remaining work of the task, and since when; null: it is not here. */
  workLeftOf(taskId: string): WorkLeft | null {
    const process = this.#processes.get(taskId)
    return process === undefined
      ? null
      : workLeftOf(process, this.#clock.now(), process.isBusy ? this.#sharing.leftUs(process) : 0)
  }

  prepare(...[request, onProgress, done]: Parameters<NonNullable<Device['prepare']>>): void {
    this.#images.prepare(request, onProgress, done)
  }

  unprepare(taskId: string): void {
    this.#images.unprepare(taskId)
  }

  imagesHere(...[images, done]: Parameters<NonNullable<Device['imagesHere']>>): void {
    this.#images.imagesHere(images, done)
  }

  launch({ start, command, image, onUse }: LaunchRequest, done: (launched: Launched) => void): void {
    const { startMs = 0 } = this.#node.gpu
    const starting = new ProcessStart(this.#clock, { startMs: startMs + this.#images.missingMs(image) })
    const process = this.#newProcess(start, this.#workload.planOf(start.taskId, command), starting.at)
    process.onUse = onUse
    starting.whenOver(() => {
      if (process.isEnded) return
      const isOver = !this.#begin(process)
      // Another server adopted it between its launch and its first step: the launcher is gone.
      if (process.moves === 0) done({ error: null, wantsGpu: process.isBusy })
      else if (process.isBusy) this.#listener?.gpuWanted(process.taskId, process.attempt)
      if (isOver) this.#exit(process, 0, null)
      else this.#planGrowth(process)
    })
  }

  suspend(taskId: string, attempt: number, done: Suspended): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return this.#soon(() => done('copy_failed'))
    this.#swaps.suspend(process, done)
  }

  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return this.#soon(() => done('copy_failed'))
    this.#swaps.resume(process, done)
  }

  freeze(taskId: string, attempt: number): void {
    const process = this.#find(taskId, attempt)
    if (process !== null) this.#hold(process, true, process.isSuspended)
  }

  thaw(taskId: string, attempt: number): void {
    const process = this.#find(taskId, attempt)
    if (process !== null) this.#hold(process, false, false)
  }

  /**
   * Its guards keep it. Guards that paused their tasks at the end of the previous lease resume them, unless
   * the server orders otherwise.
   */
  lease(until: Instant, lengthMs: DurationMs): void {
    this.#cancelLease()
    const leased = (): Process[] => [...this.#processes.values()].filter((process) => process.isLeased)
    const end = (): void =>
      leased().forEach((process) => this.#exit(process, null, 'its lease had ended', true))
    const freeze = (): void => {
      for (const process of leased()) this.#hold(process, process.isFrozen, true)
      this.#cancelLease = this.#leaseClock.at(until + lengthMs, end, RANK_DEVICE)
    }
    this.#cancelLease = this.#leaseClock.at(until, freeze, RANK_DEVICE)
    if (until <= this.#leaseClock.now()) return
    for (const process of this.#processes.values())
      if (process.isSuspended) this.#hold(process, process.isFrozen, false)
  }

  setLeased(taskId: string, attempt: number, isLeased: boolean): void {
    const process = this.#find(taskId, attempt)
    if (process !== null) process.isLeased = isLeased
  }

  /** Its guard keeps the deadline. A running task handles SIGTERM at once, or within its modelled time. */
  stop(taskId: string, attempt: number, graceMs: DurationMs): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return
    if (graceMs === 0) {
      process.isStopping = true
      return this.#soon(() => this.#stopped(process, 'stopped'))
    }
    if (process.isStopping || process.hasGrace) return
    process.hasGrace = true
    this.#leaseClock.at(
      this.#leaseClock.now() + graceMs,
      () => this.#stopped(process, process.isHandling ? 'stopped' : NEVER_RAN),
      RANK_DEVICE,
    )
    this.#handleStop(process)
  }

  /** It handles SIGTERM once it runs. */
  #handleStop(process: Process): void {
    if (!process.hasGrace || process.isHandling) return
    const runsOutside = !process.isInVram && process.swappedOutBy !== 'driver'
    if (!runsOutside && (!process.isInVram || !process.isResident)) return
    if (process.isFrozen || process.isSuspended) return
    process.isHandling = true
    const takesMs = this.#workload.stopTakesMs?.(process.taskId) ?? 0
    if (takesMs === 0) return this.#soon(() => this.#stopped(process, 'stopped'))
    this.#clock.at(this.#clock.now() + takesMs, () => this.#stopped(process, 'stopped'), RANK_DEVICE)
  }

  #stopped(process: Process, detail: string): void {
    if (!process.isEnded) this.#exit(process, null, detail)
  }

  forget(taskId: string, attempt: number): void {
    this.#ended.forget(taskId, attempt)
  }

  /** Simulated tasks write nothing. */
  readOutput(...[, , , , , done]: Parameters<Device['readOutput']>): void {
    this.#soon(() => done(null))
  }

  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void {
    const process = this.#find(taskId, attempt)
    if (process === null) return
    process.heldMib = null
    if (isGranted) {
      process.vramMib = mib
      if (process.isInVram) process.usedMib = mib
      this.#planGrowth(process)
    } else this.#soon(() => !process.isEnded && this.#exit(process, 1, 'the allocation was refused'))
  }

  #newProcess(start: AttemptStart, plan: WorkPlan, startedAt: Instant): Process {
    const process = newSimulatedProcess(start, plan, startedAt)
    this.#processes.set(start.taskId, process)
    this.#runWatcher?.runs(start.taskId)
    return process
  }

  // ── phases ──────────────────────────────────────────────────────────────────

  /** Takes the next step of its work, of which `doneUs` is done; returns false after the last. */
  #begin(process: Process, doneUs = 0): boolean {
    const now = this.#clock.now()
    const { cursor } = process
    if (!cursor.advance(now)) return false
    process.isBusy = cursor.isBusy
    if (cursor.isBusy) {
      process.leftUs = cursor.stepMs * 1000 - doneUs
      this.#share(process)
    } else {
      process.stepEndsAt = now + cursor.stepMs
      process.idleTimer ??= this.#clock.timer(this.#onIdleOver, process, RANK_DEVICE)
      process.idleTimer.set(process.stepEndsAt)
    }
    return true
  }

  /** GPU work is done: it no longer shares. */
  #stepDone(process: Process): void {
    process.isRunning = false
    this.#advance(process)
  }

  /** A step is over: starts the next one and reports the change. */
  #advance(process: Process): void {
    const wasBusy = process.isBusy
    if (!this.#begin(process)) {
      this.#exit(process, 0, null)
      return
    }
    if (process.isBusy === wasBusy) return
    if (wasBusy) process.lastUseAt = this.#clock.now()
    this.#tellUse(process, 0)
  }

  /** It is back and continues: only now is it known whether it has work. */
  #wake(process: Process): void {
    const { isStepOver, stepEndsAt, gpus } = process
    const now = this.#clock.now()
    process.isStill = process.isStepOver = false
    if (!isStepOver) return this.#tellUse(process, now - process.lastUseAt)
    this.#advance(process)
    if (process.isBusy) this.unsignalledWaitMs += gpus.length * (now - stepEndsAt)
  }

  /** @param idleMs since its last use, if it has no work */
  #tellUse(process: Process, idleMs: DurationMs): void {
    if (process.onUse !== null) process.onUse(process.isBusy, process.isBusy ? 0 : idleMs)
    else if (process.isBusy) this.#listener?.gpuWanted(process.taskId, process.attempt)
    else this.#listener?.gpuUsed(process.taskId, process.attempt, idleMs)
  }

  #exit(process: Process, exitCode: number | null, detail: string | null, didLeaseEnd = false): void {
    const end = { exitCode, detail, didEndItself: exitCode !== null && !process.hasGrace, didLeaseEnd }
    this.#processes.delete(process.taskId)
    this.#runWatcher?.rests(process.taskId)
    process.isEnded = true
    this.#ended.add(process.start, end)
    if (exitCode !== null) this.onOwnEnd?.(process.taskId)
    process.isBusy = false
    this.#share(process)
    if (staysRunning(process)) this.#soon(() => this.#surplusChanged())
    process.idleTimer?.clear()
    process.growthTimer?.clear()
    this.#listener?.exited(process.taskId, process.attempt, end)
  }

  // ── sharing ─────────────────────────────────────────────────────────────────

  /** It may have started or stopped running. */
  #share(process: Process): void {
    const isRunning = process.isBusy && process.isResident && !process.isFrozen && !process.isSuspended
    if (isRunning === process.isRunning) return
    process.isRunning = isRunning
    if (isRunning) this.#sharing.add(process)
    else this.#sharing.remove(process)
  }

  // ── VRAM ────────────────────────────────────────────────────────────────────

  /** Returns the VRAM of its tasks on this GPU, and the part that they kept although they reported less. */
  usedMib(gpu: number): { readonly mib: Mib; readonly surplusMib: Mib } {
    let [mib, surplus] = [0, 0]
    for (const process of this.#processes.values()) {
      if (!process.gpus.includes(gpu)) continue
      mib += process.usedMib
      surplus += surplusOf(process)
    }
    return { mib, surplusMib: surplus }
  }

  /** Returns the VRAM of the task on each of its GPUs; null: the task is not on this device. */
  vramOf(taskId: string): { readonly mib: Mib; readonly surplusMib: Mib } | null {
    const process = this.#processes.get(taskId)
    return process === undefined ? null : { mib: process.usedMib, surplusMib: surplusOf(process) }
  }

  #freeMib(gpu: number): Mib {
    const { physical_mib = 0, foreign_mib = 0 } = this.#gpus[gpu] ?? {}
    const { mib, surplusMib: surplus } = this.usedMib(gpu)
    return Math.max(0, physical_mib - (foreign_mib - surplus) - mib)
  }

  /** Measures once a second, like a real server. */
  #surplusChanged(): void {
    const before = this.#gpus
    this.#look()
    if (this.#gpus.some(({ foreign_mib }, index) => foreign_mib !== before[index]?.foreign_mib))
      this.onSurplus?.()
    const over = this.#gpus.filter(({ index }) => this.usedMib(index).surplusMib > 0)
    for (const process of this.#processes.values()) if (surplusOf(process) > 0) this.#swaps.measured(process)
    for (const { index } of over) this.#listener?.freeMeasured(index, this.#freeMib(index))
    if (over.length === 0 || this.#isMeasuring) return
    this.#isMeasuring = true
    this.#clock.at(
      this.#clock.now() + MEASURED_EVERY_MS,
      () => {
        this.#isMeasuring = false
        this.#surplusChanged()
      },
      RANK_DEVICE,
    )
  }

  #restStays(process: Process, mib: Mib): void {
    const before = process.residualMib
    process.residualMib = mib
    this.#look()
    if (this.#listener?.restStays(process.taskId, process.attempt, mib) !== true) process.residualMib = before
    this.#surplusChanged()
  }

  #returned(process: Process): void {
    this.#growIfDue(process)
    if (process.isStill) this.#wake(process)
    this.#handleStop(process)
  }

  // ── growth ──────────────────────────────────────────────────────────────────

  #planGrowth(process: Process): void {
    const steps = this.#workload.allocStepsOf(process.taskId)
    while (
      process.nextGrowth < steps.length &&
      (steps[process.nextGrowth] as readonly [DurationMs, Mib])[1] <= process.vramMib
    ) {
      process.nextGrowth += 1
    }
    const step = steps[process.nextGrowth]
    if (step === undefined) return
    const at = Math.max(this.#clock.now(), process.startedAt + step[0])
    process.growthTimer = this.#clock.timer(this.#onGrowthDue, process, RANK_DEVICE)
    process.growthTimer.set(at)
  }

  /** Only a process in VRAM allocates. */
  #growIfDue(process: Process): void {
    if (!process.isGrowthDue || !process.isResident) return
    process.isGrowthDue = false
    const step = this.#workload.allocStepsOf(process.taskId)[process.nextGrowth++]
    if (step === undefined) return
    process.heldMib = step[1]
    this.#listener?.allocationWanted(process.taskId, process.attempt, step[1])
  }

  // ── small things ────────────────────────────────────────────────────────────

  #hold(process: Process, isFrozen: boolean, isSuspended: boolean): void {
    const wasHeld = process.isFrozen || process.isSuspended
    const isHeld = isFrozen || isSuspended
    if (wasHeld && !isHeld && process.isStopping) return
    process.isFrozen = isFrozen
    process.isSuspended = isSuspended
    if (wasHeld === isHeld) return
    if (isHeld) this.#runWatcher?.rests(process.taskId)
    else this.#runWatcher?.runs(process.taskId)
    this.#share(process)
    if (!isHeld) this.#handleStop(process)
  }

  #look(): void {
    const gpus = gpuReports(this.#node, this.#foreignMib).map((gpu) => {
      const { surplusMib: surplus } = this.usedMib(gpu.index)
      return surplus === 0 ? gpu : { ...gpu, foreign_mib: gpu.foreign_mib + surplus }
    })
    this.#gpus = this.troubles.seen(gpus)
  }

  #find(taskId: string, attempt: number): Process | null {
    const process = this.#processes.get(taskId)
    return process?.attempt === attempt ? process : null
  }

  #soon(fn: () => void): void {
    this.#clock.soon(fn, RANK_DEVICE)
  }
}

function surplusOf(process: Process): Mib {
  return process.isInVram || process.isMoving ? 0 : surplusMib(process, process.usedMib)
}
