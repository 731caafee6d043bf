/**
 * A GPU server's core with a passive device, a bus with scripted answers, a storage that can fail, and a
 * clock under the control of the test. The calls of the core are recorded; a forbidden call throws at once.
 */
import type { Boot } from '../../protocol/message-fields.ts'
import type {
  Command,
  CommandResult,
  GpuReport,
  GrantCommand,
  Hello,
  LogStream,
  NodeSettings,
  PrepareCommand,
  SwapCommand,
} from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import type { DurationMs, Feature, Instant, Mib } from '../../protocol/units.ts'
import type {
  AttemptEnd,
  Device,
  DeviceListener,
  Launched,
  LaunchRequest,
  OutputPart,
  Survivor,
  LeftAs,
  Suspended,
  SwapOutcome,
} from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import { EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import type { NodeChange, NodeState, NodeStorage } from '../../gpu-server/core/storage.ts'
import { NODE_ID, ScriptedBus } from './scripted-bus.ts'
import { FakePreparations } from './fake-preparations.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

export const COMMAND_TTL_MS = 15_000
const STEPS_IN_ONE_MOVE = 100_000

export interface HarnessOptions {
  readonly gpus?: number
  readonly physicalMib?: Mib
  readonly hostSwapMib?: Mib
  readonly settings?: Partial<NodeSettings>
  readonly allowExec?: boolean
  readonly features?: readonly Feature[]
  readonly onRefused?: (reason: string) => void
  /** False: the core is created but not started. */
  readonly isStarted?: boolean
}

export class ServerCoreHarness {
  readonly clock = new VirtualClock(1_000_000)
  readonly storage = new CopyingStorage()
  readonly bus: ScriptedBus
  device: FakeDevice
  core: ServerCore
  readonly #options: HarnessOptions
  #startedAt: number

  constructor(options: HarnessOptions = {}) {
    this.#options = options
    this.bus = new ScriptedBus(this.clock, {
      heartbeat_ms: 5_000,
      run_lease_ms: 300_000,
      safety_reserve_mib: 1_000,
      ...options.settings,
    })
    this.bus.mayBeTaken = (epoch) => !this.storage.isFailing || epoch === this.storage.kept.highestEpoch
    this.device = this.#newDevice()
    this.#startedAt = this.clock.now()
    this.core = this.#newCore()
    if (options.isStarted === false) return
    this.core.start()
    this.settle()
  }

  /** The host crashes: all its tasks are gone, its disk remains. */
  restart(): void {
    this.core.stop()
    this.device = this.#newDevice()
    this.#startAgain()
  }

  /** The server process is killed and restarted: its tasks live on under their guards. */
  bounce(meanwhile: () => void = () => {}): void {
    this.core.stop()
    meanwhile()
    this.#startAgain()
  }

  #startAgain(): void {
    this.bus.answersSinceHello = 0
    this.#startedAt = this.clock.now()
    this.core = this.#newCore()
    this.core.start()
    this.settle()
  }

  /** Runs all due timers. */
  settle(): void {
    this.advance(0)
  }

  advance(ms: DurationMs): void {
    const until = this.clock.now() + ms
    const stepsAllowed = this.clock.steps + STEPS_IN_ONE_MOVE
    this.clock.run(until, () => this.clock.steps > stepsAllowed)
    if (this.clock.steps > stepsAllowed) throw new Error(`the core is busy for ever at ${this.clock.now()}`)
    this.clock.advanceTo(until)
  }

  /** A controller of this epoch answers the next heartbeat, and commands come from it from now on. */
  controllerChanges(epoch: number): void {
    this.bus.epoch = epoch
    this.advance(6_000)
  }

  get mono(): number {
    return this.clock.now() - this.#startedAt
  }

  get boot(): Boot {
    const last = this.bus.sent.at(-1)
    if (last === undefined) throw new Error('the core has not spoken yet')
    return last.boot
  }

  /**
   * Delivers a command as the controller would and returns the answer; through the codec, as in production.
   */
  command(body: Command, epoch = this.bus.epoch): CommandResult {
    return this.bus.deliver(this.bus.envelope(body, epoch))
  }

  prepare(taskId: string, fields: Partial<PrepareCommand> = {}): CommandResult {
    return this.command({ op: 'prepare', ...this.#address(taskId, 1), image: 'team/train:1', ...fields })
  }

  start(taskId: string, fields: Partial<StartCommand> & { readonly epoch?: number } = {}): CommandResult {
    const { epoch, ...rest } = fields
    return this.command(
      {
        op: 'start',
        ...this.#address(taskId, 1),
        gpus: [0],
        vram_mib: 1_000,
        gpu_mode: 'shared',
        noswap: 0,
        priority: 2,
        on_node_loss: 'wait',
        command: ['train'],
        ...rest,
      },
      epoch,
    )
  }

  /** Started, launched, and acknowledged. */
  run(taskId: string, fields: Partial<StartCommand> & { readonly wantsGpu?: boolean } = {}): void {
    const { wantsGpu, ...rest } = fields
    const result = this.start(taskId, rest)
    if (result.outcome !== 'accepted')
      throw new Error(`start of ${taskId}: ${result.outcome} ${result.reason}`)
    this.device.launched(taskId, { error: null, wantsGpu: wantsGpu ?? false })
    this.settle()
  }

  stop(taskId: string, attempt = 1, graceMs = 0): CommandResult {
    const grace = graceMs === 0 ? {} : { grace_ms: graceMs }
    return this.command({ op: 'stop', ...this.#address(taskId, attempt), reason: 'operator', ...grace })
  }

  swapOut(taskId: string, fields: Partial<SwapCommand> = {}): CommandResult {
    return this.#swap('swap_out', taskId, fields)
  }

  swapIn(taskId: string, fields: Partial<SwapCommand> = {}): CommandResult {
    return this.#swap('swap_in', taskId, fields)
  }

  /** Swapped out completely. */
  swappedOut(taskId: string): void {
    const result = this.swapOut(taskId)
    if (result.outcome !== 'accepted')
      throw new Error(`swap-out of ${taskId}: ${result.outcome} ${result.reason}`)
    this.device.suspended(taskId)
    this.settle()
  }

  growth(op: GrantCommand['op'], taskId: string, fields: Partial<GrantCommand> = {}): CommandResult {
    return this.command({ op, ...this.#address(taskId, 1), mib: 0, noswap: 0, reason: null, ...fields })
  }

  exit(taskId: string, exitCode: number | null = 0, detail: string | null = null): void {
    this.device.exit(taskId, exitCode, detail)
    this.settle()
  }

  /**
   * Returns how much more VRAM a task could get on this GPU now: tries starts that are refused, so that none
   * begins.
   */
  isVramFree(gpu: number, mib: Mib): boolean {
    const probe = this.start(`probe-${this.bus.delivered}`, { gpus: [gpu], vram_mib: mib })
    if (probe.outcome === 'refused') return false
    this.exit(probe.task_id)
    return true
  }

  /** The report of a task in the latest snapshot that the core sent. */
  report(taskId: string): Hello['tasks'][number] | undefined {
    const snapshot = this.bus.snapshots().at(-1)
    return snapshot?.tasks.find((task) => task.task_id === taskId)
  }

  #swap(op: SwapCommand['op'], taskId: string, fields: Partial<SwapCommand>): CommandResult {
    const generation = this.device.generations.get(taskId) ?? 1
    return this.command({ op, ...this.#address(taskId, 1), generation, force_active: false, ...fields })
  }

  #address(taskId: string, attempt: number) {
    return { task_id: taskId, attempt, ...this.address() }
  }

  /** Of a command that is sent now. */
  address() {
    return { valid_until_mono: this.mono + COMMAND_TTL_MS, node_boot: this.boot }
  }

  #newDevice(): FakeDevice {
    const { gpus = 1, physicalMib = 10_000, hostSwapMib = 100_000 } = this.#options
    const device = new FakeDevice(gpus, physicalMib, hostSwapMib)
    device.mayThaw = () => this.bus.answersSinceHello > 0
    device.reserveMib = () => this.bus.appliedReserveMib
    device.isStored = (taskId, attempt) => this.storage.kept.attempts.get(taskId) === attempt
    return device
  }

  #newCore(): ServerCore {
    return new ServerCore({
      nodeId: NODE_ID,
      name: 'alpha',
      address: '10.0.0.7',
      hostSwapMib: this.device.hostSwapMib,
      signalsWanted: true,
      deviceKind: 'simulated',
      allowExec: this.#options.allowExec ?? true,
      features: this.#options.features ?? [],
      clock: this.clock,
      random: seededStream(7, `boot ${this.storage.kept.bootCounter}`),
      bus: this.bus,
      device: this.device,
      storage: this.storage,
      areHeartbeatsElided: false,
      ...(this.#options.onRefused === undefined ? {} : { onRefused: this.#options.onRefused }),
    })
  }
}

/** A copy from the moment of saving is kept, as on a disk. */
class CopyingStorage implements NodeStorage {
  kept: NodeState = EMPTY_NODE_STATE
  /** The content of a disk that stores only changes. */
  readonly changes: NodeChange[] = []
  isFailing = false
  saves = 0

  load(): NodeState {
    return this.kept
  }

  save(state: NodeState, changes: readonly NodeChange[]): void {
    if (this.isFailing) throw new Error('no space left on device')
    this.saves += 1
    this.changes.push(...changes)
    this.kept = {
      ...state,
      attempts: new Map(state.attempts),
      burned: new Map(state.burned),
      living: new Map(state.living),
      outbox: [...state.outbox],
    }
  }
}

interface Process {
  readonly start: AttemptStart
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  readonly done: (launched: Launched) => void
  vramMib: Mib
  /** Reserve and foreign memory when it entered VRAM. */
  limits: string
  isInVram: boolean
  isInHost: boolean
  isFrozen: boolean
  isLeased: boolean
  wantsGpu: boolean
  idleMs: DurationMs
  heldMib: Mib | null
  moved: Suspended | null
  isLeaving: boolean
}

/** The exit code of a command that SIGKILL ended: it did not end by itself. */
export const KILLED = 137

/** The output of every task of a fake device. */
export const OUTPUT = Buffer.from('step 1\nstep 2\n')

/**
 * Passive: a test says when a launch, a swap or a task ends. It counts VRAM independently, and throws when
 * tasks do not fit.
 */
export class FakeDevice extends FakePreparations implements Device {
  readonly hostSwapMib: Mib
  readonly processes = new Map<string, Process>()
  /** `task/attempt` of every launch on this device. */
  readonly everLaunched = new Set<string>()
  /** Ends that were not forgotten, by `task/attempt`. */
  readonly ended = new Map<string, { readonly start: AttemptStart; readonly end: AttemptEnd }>()
  /** Stopped with a grace. */
  readonly graceful = new Set<string>()
  /** Returns the residency after a restart. */
  knowsResidency = true
  leaseUntil: Instant | null = null
  /** Number of completed swaps, plus one for the start: the generation that the controller would send. */
  readonly generations = new Map<string, number>()
  readonly #reports: GpuReport[]
  reserveMib: () => Mib = () => 0
  isStored: (taskId: string, attempt: number) => boolean = () => true
  /** Whether the controller has answered this start of the server. */
  mayThaw: () => boolean = () => true
  listener: DeviceListener | null = null

  constructor(gpus: number, physicalMib: Mib, hostSwapMib: Mib) {
    super()
    this.hostSwapMib = hostSwapMib
    this.#reports = Array.from({ length: gpus }, (_, index) => ({
      index,
      model: 'A100',
      physical_mib: physicalMib,
      foreign_mib: 0,
    }))
  }

  setForeign(gpu: number, mib: Mib): void {
    this.#reports[gpu] = { ...(this.#reports[gpu] as GpuReport), foreign_mib: mib }
  }

  launched(taskId: string, launched: Launched): void {
    const process = this.#of(taskId)
    if (launched.error === null) {
      this.generations.set(taskId, 1)
      process.wantsGpu = launched.wantsGpu
    } else this.processes.delete(taskId)
    process.done(launched)
  }

  suspended(taskId: string, outcome: SwapOutcome = 'done', left: LeftAs = {}): void {
    const process = this.#of(taskId)
    process.isInVram = outcome !== 'done'
    process.isInHost = outcome === 'done'
    this.#moved(process, outcome, left)
  }

  resumed(taskId: string, outcome: SwapOutcome = 'done'): void {
    const process = this.#of(taskId)
    process.isInVram = outcome === 'done'
    process.isInHost = outcome !== 'done'
    this.#moved(process, outcome)
  }

  exit(taskId: string, exitCode: number | null, detail: string | null, didLeaseEnd = false): void {
    const { start, attempt } = this.#of(taskId)
    const end = { exitCode, detail, didEndItself: exitCode !== null && exitCode !== KILLED, didLeaseEnd }
    this.processes.delete(taskId)
    this.ended.set(`${taskId}/${attempt}`, { start, end })
    this.listener?.exited(taskId, attempt, end)
  }

  /** Requests more VRAM, or reports whether it is busy. */
  wants(taskId: string, mib: Mib): void {
    this.#of(taskId).heldMib = mib
    this.listener?.allocationWanted(taskId, this.#of(taskId).attempt, mib)
  }

  uses(taskId: string, wantsGpu: boolean, idleMs: DurationMs): void {
    const process = this.#of(taskId)
    process.wantsGpu = wantsGpu
    process.idleMs = idleMs
    if (wantsGpu) this.listener?.gpuWanted(taskId, process.attempt)
    else this.listener?.gpuUsed(taskId, process.attempt, idleMs)
  }

  vramUsedMib(gpu: number): Mib {
    let used = 0
    for (const process of this.processes.values())
      if (process.isInVram && process.gpus.includes(gpu)) used += process.vramMib
    return used
  }

  requestCounts = () => ({ full_queues: 0, refused: 0, expired: 0 })
  gpus(): readonly GpuReport[] {
    return this.#reports.slice()
  }

  observe(listener: DeviceListener): void {
    this.listener = listener
  }

  survivors(): readonly Survivor[] {
    const living = [...this.processes.values()].map((process): Survivor => {
      const { start, isFrozen, wantsGpu, idleMs, vramMib, heldMib } = process
      // The swap in progress is cancelled.
      if (process.moved !== null) process.isInVram = process.isLeaving
      process.isInHost = !process.isInVram
      process.moved = null
      const residency = this.knowsResidency ? (process.isInVram ? 'resident' : 'swapped_out') : 'unknown'
      this.generations.set(process.taskId, (this.generations.get(process.taskId) ?? 0) + 1)
      const isStopping = this.graceful.has(process.taskId)
      return { start, end: null, residency, isFrozen, isStopping, wantsGpu, idleMs, vramMib, heldMib }
    })
    return [...this.ended.values(), ...living]
  }

  launch({ start }: LaunchRequest, done: (launched: Launched) => void): void {
    const { taskId, attempt, gpus, vramMib } = start
    this.record('launch', taskId, attempt)
    if (this.everLaunched.has(`${taskId}/${attempt}`))
      throw new Error(`attempt ${attempt} of ${taskId} starts twice (R3)`)
    if (this.processes.has(taskId)) throw new Error(`${taskId} runs twice`)
    if (!this.isStored(taskId, attempt))
      throw new Error(`attempt ${attempt} of ${taskId} starts and is not durable (R1)`)
    this.everLaunched.add(`${taskId}/${attempt}`)
    this.processes.set(taskId, {
      start,
      taskId,
      attempt,
      gpus,
      vramMib,
      done,
      limits: this.#limits(),
      isInVram: true,
      isInHost: false,
      isFrozen: false,
      isLeased: true,
      wantsGpu: false,
      idleMs: 0,
      heldMib: null,
      moved: null,
      isLeaving: false,
    })
    this.#checkReserve(gpus)
  }

  suspend(taskId: string, attempt: number, done: Suspended): void {
    const process = this.#called('suspend', taskId, attempt)
    process.isInHost = true
    process.moved = done
    process.isLeaving = true
    this.#checkHost()
  }

  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    const process = this.#called('resume', taskId, attempt)
    process.isInVram = true
    process.limits = this.#limits()
    process.moved = done
    process.isLeaving = false
    this.#checkReserve(process.gpus)
  }

  freeze(taskId: string, attempt: number): void {
    this.#called('freeze', taskId, attempt).isFrozen = true
  }

  thaw(taskId: string, attempt: number): void {
    if (!this.mayThaw()) throw new Error(`${taskId} runs again before the controller has answered (R4)`)
    this.#called('thaw', taskId, attempt).isFrozen = false
  }

  lease(until: Instant): void {
    this.leaseUntil = until
  }

  setLeased(taskId: string, attempt: number, isLeased: boolean): void {
    const process = this.#of(taskId)
    if (process.attempt !== attempt)
      throw new Error(`attempt ${attempt} of ${taskId} would be leased, but ${process.attempt} runs`)
    process.isLeased = isLeased
  }

  stop(taskId: string, attempt: number, graceMs: DurationMs): void {
    if (graceMs > 0) this.graceful.add(taskId)
    this.#called(graceMs === 0 ? 'stop' : `stop within ${graceMs}`, taskId, attempt)
  }

  forget(taskId: string, attempt: number): void {
    this.ended.delete(`${taskId}/${attempt}`)
  }

  readOutput(
    taskId: string,
    attempt: number,
    _stream: LogStream,
    offset: number,
    maxBytes: number,
    done: (part: OutputPart | null) => void,
  ): void {
    const isKnown = this.everLaunched.has(`${taskId}/${attempt}`)
    done(
      isKnown
        ? { offset, base64: OUTPUT.subarray(offset, offset + maxBytes).toString('base64'), isEnded: false }
        : null,
    )
  }

  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void {
    const process = this.#called(isGranted ? `grant ${mib}` : 'refuse', taskId, attempt)
    process.heldMib = null
    if (!isGranted) return
    if (!process.isInVram || process.isInHost)
      throw new Error(`an allocation of ${taskId} goes through while it is not resident`)
    const isMore = mib > process.vramMib
    process.vramMib = mib
    // VRAM reserved during a launch or return stays reserved if foreign memory or the reserve grows before
    // the task is resident.
    if (isMore && process.limits === this.#limits()) this.#checkReserve(process.gpus)
  }

  #called(call: string, taskId: string, attempt: number): Process {
    this.record(call, taskId, attempt)
    const process = this.#of(taskId)
    if (process.attempt !== attempt)
      throw new Error(`${call} of attempt ${attempt} of ${taskId}, but ${process.attempt} runs`)
    return process
  }

  #moved(process: Process, outcome: SwapOutcome, left: LeftAs = {}): void {
    const { moved, taskId } = process
    if (moved === null) throw new Error(`${taskId} is not moving`)
    process.moved = null
    this.generations.set(taskId, (this.generations.get(taskId) ?? 1) + 1)
    moved(outcome, left)
  }

  #of(taskId: string): Process {
    const process = this.processes.get(taskId)
    if (process === undefined) throw new Error(`${taskId} does not run here`)
    return process
  }

  #limits(): string {
    return [this.reserveMib(), ...this.#reports.map((report) => report.foreign_mib)].join(' ')
  }

  #checkReserve(gpus: readonly number[]): void {
    for (const gpu of gpus) {
      const report = this.#reports[gpu] as GpuReport
      const freeMib = report.physical_mib - report.foreign_mib - this.vramUsedMib(gpu)
      if (freeMib < this.reserveMib())
        throw new Error(`${freeMib} MiB free on GPU ${gpu}, the reserve is ${this.reserveMib()} (R12)`)
    }
  }

  #checkHost(): void {
    let used = 0
    for (const process of this.processes.values())
      if (process.isInHost) used += process.vramMib * process.gpus.length
    if (used > this.hostSwapMib) throw new Error(`${used} MiB in host memory, ${this.hostSwapMib} are there`)
  }
}
