/**
 * The `Device` port on a real host: tasks run under guards, an accelerator moves their bytes, and each task
 * has a control socket. The same for NVIDIA GPUs and declared ones.
 */
import type { GpuReport, LogStream } from '../../protocol/messages.ts'
import type { RequestCounts } from '../../protocol/message-fields.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type {
  AttemptEnd,
  Device,
  DeviceListener,
  LaunchRequest,
  Launched,
  OutputPart,
  PortAddress,
  PrepareProgress,
  Prepared,
  PrepareRequest,
  Survivor,
  LeftAs,
  Suspended,
  SwapOutcome,
} from '../core/device.ts'
import type { AttemptStart } from '../core/attempt-start.ts'
import type { KeptAttempt } from '../core/storage.ts'
import type { GuardedTask, LaunchAnswer } from '../guard/guards.ts'
import type { Attachments } from './attachments.ts'
import { endOf, startIn } from './guarded-attempt.ts'
import { HookCalls } from './hook-calls.ts'
import { HostLaunches, memoryLimitOf, type HostLaunchOptions } from './host-launches.ts'
import { HostTask } from './host-task.ts'
import { LeaseProcesses } from './lease-processes.ts'
import type { ProxyRange } from './port-proxies.ts'
import { SwapMethods } from './swap-methods.ts'
import { TaskRequests } from './task-requests.ts'
import { TaskSockets } from './task-sockets.ts'
import { UseTracker } from './use-tracker.ts'
import { Sampling } from './sampling.ts'
import { VramLimits } from './vram-limits.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface HostDeviceOptions extends HostLaunchOptions {
  /** The guard program. */
  readonly program: string
  /** CLOCK_BOOTTIME, as in the guards. */
  readonly clock: Clock
  /** Folder of the tasks' sockets. */
  readonly socketFolder: string
  /** The processes of leases; null: leases are reservations only. */
  readonly attachments: Attachments | null
  /** Ports of proxies for tasks that run while their VRAM is away; null: no proxies. */
  readonly proxies?: ProxyRange | null
  /** A task without a signal or measured use for this long is idle. */
  readonly idleAfterMs: DurationMs
  /** Receives one line for the log: what went wrong with a task, and what was done. */
  readonly onNote: (line: string) => void
}

type LivingSurvivor = Extract<Survivor, { readonly end: null }>

export class HostDevice implements Device {
  readonly #options: HostDeviceOptions
  readonly #sockets: TaskSockets
  readonly #uses: UseTracker
  readonly #limits: VramLimits
  readonly #methods: SwapMethods
  readonly #requests: TaskRequests<HostTask>
  readonly #leases: LeaseProcesses
  readonly #tasks = new Map<string, HostTask>()
  readonly #launches: HostLaunches
  readonly #sampling: Sampling
  /** Ended attempts by task, until they are forgotten. */
  readonly #ended = new Map<string, { readonly start: AttemptStart; readonly end: AttemptEnd }>()
  /** Residency of adopted tasks, according to the accelerator. */
  readonly #found = new Map<
    string,
    { readonly task: GuardedTask; readonly residency: 'resident' | 'swapped_out' | 'unknown' }
  >()
  #listener: DeviceListener | null = null
  #leaseUntil: Instant = -1
  #isClosed = false

  /** Throws when the socket folder cannot be used. */
  constructor(options: HostDeviceOptions) {
    this.#options = options
    this.#uses = new UseTracker(options.clock, options.idleAfterMs, () => this.#listener)
    this.#limits = new VramLimits((task) => options.guards.kill(task.taskId, task.attempt))
    this.#requests = new TaskRequests({
      program: options.program,
      folderOf: (taskId, attempt) => options.guards.folderOf(taskId, attempt),
      range: options.proxies ?? null,
      onRequest: (task: HostTask) => {
        if (!task.isEnded) this.#uses.requested(task)
      },
      onNote: (task, why) => this.#note(task, why),
      onTrouble: options.onNote,
    })
    this.#leases = new LeaseProcesses({
      ...options,
      uses: this.#uses,
      find: (taskId, attempt) => this.#find(taskId, attempt),
      isOfTask: (pid) => [...this.#tasks.values()].some((task) => task.processIds().includes(pid)),
      onNote: (task, why) => this.#note(task, why),
      onTrouble: options.onNote,
    })
    this.#sockets = new TaskSockets(
      options.socketFolder,
      (taskId, attempt) => options.places.socketGroupOf(taskId, attempt),
      {
        busy: (taskId, attempt, isBusy) => this.#signalled(taskId, attempt, isBusy),
        allocationWanted: (taskId, attempt, mib) => this.#listener?.allocationWanted(taskId, attempt, mib),
      },
    )
    this.#methods = new SwapMethods({
      accelerator: options.accelerator,
      hooks: new HookCalls(options, this.#sockets),
      now: () => options.clock.now(),
      onNote: (task, why) => this.#note(task, why),
      restStays: (task, mib) => this.#listener?.restStays(task.taskId, task.attempt, mib) ?? false,
    })
    this.#launches = new HostLaunches(options, (taskId, attempt) => this.#sockets.open(taskId, attempt))
    this.#sampling = new Sampling({
      ...options,
      tasks: () => this.#tasks.values(),
      listener: () => this.#listener,
      leases: this.#leases,
      methods: this.#methods,
      limits: this.#limits,
      requests: this.#requests,
      uses: this.#uses,
    })
  }

  /**
   * Finds what an earlier process left; called before a core uses this device. Rejects with AcceleratorFault
   * or an error of the guards.
   */
  async open(): Promise<void> {
    const { accelerator, guards, places } = this.#options
    await accelerator.open()
    await places.openPrepared()
    guards.onExit((task) => this.#exited(task))
    for (const task of await guards.adopt()) {
      places.adopt(task)
      const start = startIn(task)
      if (start === null) {
        this.#options.onNote(
          `attempt ${task.attempt} of task ${task.taskId}: its guard holds no record of it; it is ended`,
        )
        guards.kill(task.taskId, task.attempt)
      } else if (task.state === 'ended') this.#ended.set(task.taskId, { start, end: endOf(task) })
      else {
        const probe = new HostTask(
          start,
          0,
          guards,
          { isStopped: task.state === 'suspended', isHeld: false },
          () => {},
        )
        this.#found.set(task.taskId, { task, residency: await accelerator.residencyOf(probe) })
      }
    }
    await this.#leases.open()
  }

  /** Releases all resources; tasks live on under their guards. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#listener = null
    this.#sampling.stop()
    this.#sockets.closeAll()
    this.#requests.close()
    this.#leases.close()
    this.#options.guards.close()
    await this.#options.accelerator.close()
  }

  gpus(): readonly GpuReport[] {
    return this.#methods.withSurplus(this.#options.accelerator.gpus())
  }

  requestCounts(): RequestCounts {
    return this.#requests.counts()
  }

  observe(listener: DeviceListener): void {
    this.#listener = listener
    this.#sampling.start()
  }

  survivors(known: readonly KeptAttempt[]): readonly Survivor[] {
    const survivors: Survivor[] = [...this.#ended.values()]
    const keptOf = new Map(known.map((kept) => [kept.taskId, kept]))
    for (const { task, residency } of this.#found.values()) {
      const kept = keptOf.get(task.taskId)
      const start = startIn(task)
      if (start === null || this.#ended.has(task.taskId)) continue
      const before = kept?.attempt === task.attempt ? kept : null
      survivors.push({
        ...this.#adopt(start, before, isOutOf(residency, before), task.state === 'suspended'),
        isStopping: task.isStopping === true,
      })
    }
    for (const kept of known) if (kept.isLease) survivors.push(this.#adoptLease(kept))
    this.#found.clear()
    return survivors
  }

  launch(request: LaunchRequest, done: (launched: Launched) => void): void {
    const { start, command } = request
    const task = this.#newTask(start, { isStopped: false, isHeld: false })
    this.#tasks.set(start.taskId, task)
    if (command !== null) task.vramFile = this.#options.places.vramFileOf(start.taskId, start.attempt)
    // The client of a lease tells the controller whether it is in use, not this server.
    task.wantsGpu = command !== null
    const begun: Promise<LaunchAnswer> =
      command === null ? Promise.resolve({ error: null }) : this.#launches.run(task, command, request)
    void begun.then((answer) => {
      if (answer.error !== null) this.#forgetTask(task)
      else if (!task.isEnded) void this.#requests.started(task)
      if (this.#isClosed || (answer.error === null && task.isEnded)) return
      done(answer.error === null ? { ...answer, wantsGpu: task.wantsGpu } : answer)
    })
  }

  prepare(
    request: PrepareRequest,
    onProgress: (progress: PrepareProgress) => void,
    done: (prepared: Prepared) => void,
  ): void {
    void this.#launches.preparations.prepare(request, onProgress).then((prepared) => {
      if (!this.#isClosed) done(prepared)
    })
  }

  unprepare(taskId: string, attempt: number): void {
    this.#launches.preparations.drop(taskId, attempt)
  }

  imagesHere(images: readonly string[], done: (here: readonly string[]) => void): void {
    void this.#options.containers?.imagesHere(images).then(done)
  }

  suspend(taskId: string, attempt: number, done: Suspended): void {
    let left: LeftAs = {}
    const ended = (outcome: SwapOutcome): void => done(outcome, left)
    this.#swap(taskId, attempt, ended, async (task) => {
      let outcome: SwapOutcome = 'copy_failed'
      const isWakeable = await this.#requests.left(task, async () => {
        const suspension = await this.#methods.suspend(task)
        outcome = suspension.outcome
        const { method, residualMib } = suspension
        const whyNot = this.#methods.whyNotSwappable(task)
        if (outcome === 'not_swappable' && whyNot !== undefined) left = { whyNot }
        if (outcome !== 'done' || task.isEnded) return false
        task.isResident = false
        left = method === 'driver' ? {} : { byHooks: true, residualMib }
        return true
      })
      left = { ...left, isWakeable }
      return outcome
    })
  }

  resume(taskId: string, attempt: number, done: (outcome: SwapOutcome) => void): void {
    this.#swap(taskId, attempt, done, async (task) => {
      const outcome = await this.#methods.resume(task)
      if (outcome !== 'done') return outcome
      task.isResident = true
      this.#requests.returned(task)
      this.#uses.returned(task)
      return outcome
    })
  }

  freeze(taskId: string, attempt: number): void {
    this.#find(taskId, attempt)?.freeze()
  }

  thaw(taskId: string, attempt: number): void {
    this.#find(taskId, attempt)?.thaw()
  }

  /**
   * A guard stops its task when the deadline passes while this server is stopped, or just before the guard
   * reads the new deadline: the task may run again.
   */
  lease(until: Instant, lengthMs: DurationMs): void {
    const { clock, guards } = this.#options
    const before = this.#leaseUntil
    this.#leaseUntil = until
    guards.lease(until, lengthMs)
    const now = clock.now()
    if (until <= now) return
    for (const task of this.#tasks.values()) {
      if (now < before) task.retry()
      else task.wake()
    }
  }

  setLeased(taskId: string, attempt: number, isLeased: boolean): void {
    this.#options.guards.setLeased(taskId, attempt, isLeased)
  }

  stop(taskId: string, attempt: number, graceMs: DurationMs): void {
    const task = this.#find(taskId, attempt)
    if (task === null) return
    if (!task.start.isLease) {
      this.#launches.callOff(taskId)
      return this.#options.guards.stop(taskId, attempt, graceMs)
    }
    const end = { exitCode: null, detail: null, didEndItself: false, didLeaseEnd: false }
    if (task.process !== null) return this.#leases.end(task, () => this.#end(task, end))
    const { clock } = this.#options
    clock.at(clock.now(), () => this.#end(task, end), RANK_DEVICE)
  }

  forget(taskId: string, attempt: number): void {
    if (this.#ended.get(taskId)?.start.attempt === attempt) this.#ended.delete(taskId)
    this.#forget(taskId, attempt)
  }

  answerAllocation(taskId: string, attempt: number, mib: Mib, isGranted: boolean): void {
    const task = this.#find(taskId, attempt)
    if (task !== null && isGranted) this.#grow(task, mib)
    this.#sockets.answer(taskId, attempt, mib, isGranted)
  }

  expectProcess(taskId: string, attempt: number, tokenSha256: string): string | null {
    return this.#leases.expect({ taskId, attempt }, tokenSha256)
  }

  addressesOf(taskId: string, attempt: number): readonly PortAddress[] {
    const task = this.#find(taskId, attempt)
    return task === null ? [] : this.#requests.addressesOf(task)
  }

  readOutput(
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
    done: (part: OutputPart | null) => void,
  ): void {
    this.#options.guards.readOutput(taskId, attempt, stream, offset, maxBytes).then(
      (chunk) =>
        done(
          chunk === null
            ? null
            : { offset: chunk.offset, base64: chunk.data.toString('base64'), isEnded: chunk.isEnded },
        ),
      () => done(null),
    )
  }

  // ── tasks ───────────────────────────────────────────────────────────────────

  #grow(task: HostTask, mib: Mib): void {
    task.vramMib = mib
    const limit = memoryLimitOf(task, this.#options.accelerator.kind)
    if (limit === null) return
    try {
      this.#options.guards.setMemoryLimit(task.taskId, task.attempt, limit)
    } catch (error) {
      this.#note(task, `its memory limit cannot be changed: ${errorText(error)}`)
    }
  }

  #adopt(start: AttemptStart, kept: KeptAttempt | null, isOut: boolean, isStopped: boolean): LivingSurvivor {
    const isOutByHooks = isOut && kept?.isOutByHooks === true
    const task = this.#newTask(start, { isStopped, isHeld: isOut && !isOutByHooks })
    task.vramMib = kept?.vramMib ?? start.vramMib
    task.isResident = !isOut
    if (!start.isLease) task.vramFile = this.#options.places.vramFileOf(start.taskId, start.attempt)
    if (isOutByHooks) {
      task.swappedOutBy = start.swapMethod ?? 'hooks'
      task.residualMib = kept?.residualMib ?? 0
    }
    // A running task counts as busy until a sample shows that it is idle.
    task.wantsGpu = !isOut && !isStopped && !start.isLease
    this.#tasks.set(task.taskId, task)
    if (isOut && !isOutByHooks && !isStopped && !start.isLease)
      this.#note(task, 'it ran, and its bytes are in host memory: it is stopped')
    if (isOut && !isOutByHooks) void this.#watchFound(task, isStopped)
    if (!start.isLease) this.#listen(task)
    void this.#requests.started(task, isOut)
    return {
      start,
      end: null,
      residency: isOut ? 'swapped_out' : 'resident',
      isFrozen: isStopped,
      isStopping: false,
      wantsGpu: task.wantsGpu,
      idleMs: 0,
      vramMib: null,
      heldMib: null,
    }
  }

  async #watchFound(task: HostTask, isStopped: boolean): Promise<void> {
    if (!isStopped && !task.staysRunning) await task.suspend().catch(() => {})
    if (!task.isEnded && !this.#isClosed) await this.#requests.found(task)
  }

  #adoptLease(kept: KeptAttempt): LivingSurvivor {
    const found = this.#leases.take(kept)
    if (found === null) return this.#adopt(kept, kept, kept.residency === 'swapped_out', false)
    const { process, residency } = found
    const isOut = isOutOf(residency, kept)
    const survivor = this.#adopt(kept, kept, isOut, process.isStopped)
    const task = this.#tasks.get(kept.taskId)
    if (task !== undefined) task.process = process
    return survivor
  }

  #listen(task: HostTask): void {
    this.#sockets.open(task.taskId, task.attempt).then(
      () => {
        if (task.staysRunning && task.isResident && !task.isEnded) this.#methods.undo(task)
      },
      (error: unknown) => this.#note(task, `its socket cannot be opened: ${String(error)}`),
    )
  }

  #newTask(start: AttemptStart, found: { readonly isStopped: boolean; readonly isHeld: boolean }): HostTask {
    return new HostTask(start, this.#options.clock.now(), this.#options.guards, found, (task, why) =>
      this.#note(task, why),
    )
  }

  #swap(
    taskId: string,
    attempt: number,
    done: (outcome: SwapOutcome) => void,
    move: (task: HostTask) => Promise<SwapOutcome>,
  ): void {
    const task = this.#find(taskId, attempt)
    if (task === null) return void Promise.resolve().then(() => done('copy_failed'))
    task.isMoving = true
    move(task)
      .catch((error: unknown): SwapOutcome => {
        this.#note(task, `a swap failed: ${errorText(error)}`)
        return 'copy_failed'
      })
      .then((outcome) => {
        task.isMoving = false
        if (!task.isEnded && !this.#isClosed) done(outcome)
      })
      .catch((error: unknown) => this.#note(task, String(error)))
  }

  #exited(guarded: GuardedTask): void {
    const task = this.#find(guarded.taskId, guarded.attempt)
    const end = (task === null ? null : this.#limits.endOf(task)) ?? endOf(guarded)
    if (task !== null) return this.#end(task, end)
    const start = startIn(guarded)
    if (start !== null) this.#ended.set(guarded.taskId, { start, end })
    else this.#forget(guarded.taskId, guarded.attempt)
  }

  /** Closes the folder before its ids can go to another attempt. */
  #forget(taskId: string, attempt: number): void {
    this.#options.places.close(taskId, attempt)
    this.#options.guards.forget(taskId, attempt)
  }

  #end(task: HostTask, end: AttemptEnd): void {
    if (task.isEnded) return
    this.#forgetTask(task)
    this.#ended.set(task.taskId, { start: task.start, end })
    this.#listener?.exited(task.taskId, task.attempt, end)
  }

  #forgetTask(task: HostTask): void {
    task.isEnded = true
    this.#leases.forget(task)
    if (this.#tasks.get(task.taskId) === task) this.#tasks.delete(task.taskId)
    this.#sockets.close(task.taskId, task.attempt)
    this.#requests.forget(task)
  }

  #find(taskId: string, attempt: number): HostTask | null {
    const task = this.#tasks.get(taskId)
    return task?.attempt === attempt ? task : null
  }

  // ── use ─────────────────────────────────────────────────────────────────────

  #signalled(taskId: string, attempt: number, isBusy: boolean): void {
    const task = this.#find(taskId, attempt)
    if (task !== null) this.#uses.signalled(task, isBusy)
  }

  #note(task: HostTask, why: string): void {
    this.#options.onNote(`attempt ${task.attempt} of task ${task.taskId}: ${why}`)
  }
}

/**
 * Where its bytes are: as the accelerator found, else as the server remembers. What hooks moved looks
 * resident to the driver.
 */
function isOutOf(residency: 'resident' | 'swapped_out' | 'unknown', kept: KeptAttempt | null): boolean {
  if (kept?.isOutByHooks === true) return kept.residency === 'swapped_out'
  return (residency === 'unknown' ? kept?.residency : residency) === 'swapped_out'
}
