/**
 * A simulated world: the production controller and the production GPU-server cores over a virtual clock, a
 * simulated bus and modelled devices. Only physics is modelled.
 */
import { createController } from '../../controller/controller.ts'
import type { Controller } from '../../controller/controller.ts'
import { createMemoryStore, EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import type { Event } from '../../controller/model/event.ts'
import { NO_OWNER_LIMITS } from '../../controller/model/owner-limits.ts'
import type { Node } from '../../controller/model/placement.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Store, StoredState } from '../../controller/ports/store.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import { ArrivalFeed } from './arrival-feed.ts'
import { swapTotalsOf } from './controller-host.ts'
import type { DecisionWatch, SwapTotals } from './controller-host.ts'
import type { ControllerWatch, VictimOverride } from './controller-process.ts'
import { FaultInjector } from './fault-injector.ts'
import { workOfCommand } from '../fleet/command-work.ts'
import { planForeignMemory } from '../fleet/foreign-memory.ts'
import { SimulatedDevice } from '../fleet/simulated-device.ts'
import { forwardReserveChanges } from '../fleet/forward-reserve.ts'
import { OpenWorkload } from '../fleet/open-workload.ts'
import { Collector } from '../results/collector.ts'
import type { TaskOutcome } from '../results/collector.ts'
import { Journal } from '../results/journal.ts'
import type { JournalSink } from '../results/journal.ts'
import { metricsOf } from '../results/result.ts'
import type { Metrics } from '../results/result.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { StartTask } from '../scenario/generate.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { Scenario, ScenarioNode, SimTask } from '../scenario/scenario.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'
import { SimBus } from '../network/sim-bus.ts'
import type { BusMode } from '../network/sim-bus.ts'
import { serverStream, simulatedServer } from '../fleet/simulated-server.ts'
import { groupsOf, SIMULATED_COMMAND, worldStart } from './start-world.ts'
import type { WorldStart } from './start-world.ts'
import { aloneMsOf } from '../trace/work.ts'
import { VirtualClock } from '../kernel/virtual-clock.ts'
import { SubmissionRefused } from './submission-refused.ts'

export interface WorldOptions {
  readonly seed: number
  readonly busMode?: BusMode
  /** Every heartbeat is sent; else those that change nothing are not (same decisions, a test holds it). */
  readonly areHeartbeatsEnacted?: boolean
  readonly isJournalOff?: boolean
  readonly journalSink?: JournalSink | null
  readonly onOutcome?: ((outcome: TaskOutcome) => void) | null
  /** Sees every event once it is durable, after the journal. */
  readonly onEvents?: (events: readonly Event[]) => void
  /** In place of one in memory that keeps nothing of what is over; holds this when it begins. */
  readonly store?: (initial: StoredState) => Store
  /** Its store keeps what there was of tasks that have ended, to be read afterwards. */
  readonly keepsTasks?: boolean
  /** Observes swap-out decisions, and may replace a victim. */
  readonly victimOverride?: VictimOverride
  /** Tasks that are there when it begins. */
  readonly start?: readonly StartTask[]
  /** Something may be made to break that the plan does not speak of: every heartbeat is sent. */
  readonly mayBreak?: boolean
  /**
   * What the controller speaks through in place of the bus itself; only in a world in which nothing breaks.
   */
  readonly controllerBus?: (bus: Bus) => Bus
  /**
   * Sees everything that enters a controller; asked for at each start. Its world is one in which something
   * may break.
   */
  readonly watch?: () => ControllerWatch
}

/** What a world is made of: a scenario's fleet and configuration, and what breaks in it. */
export type WorldPlan = Pick<Scenario, 'clock' | 'nodes' | 'config' | 'ownerLimits'> &
  Partial<Pick<Scenario, 'faults'>>

export class World {
  readonly clock: VirtualClock
  readonly random: Random
  readonly collector: Collector
  readonly plan: WorldPlan
  /** Null in a world in which nothing breaks: its cast is a fixed one. */
  readonly faults: FaultInjector | null
  readonly #controller: Controller
  readonly #servers = new Map<string, ServerCore>()
  readonly #journal: Journal | null
  /** What its tasks do. */
  readonly workload = new OpenWorkload()
  /** Open tasks that their owners will cancel, and when, since the start. */
  readonly cancels = new Map<string, DurationMs>()
  readonly #devices = new Map<string, SimulatedDevice>()
  /**
   * Open tasks that came over REST and whose command says nothing of work: they run until somebody ends them.
   */
  readonly #endless = new Set<string>()
  readonly #startedAt: Instant
  readonly #areHeartbeatsElided: boolean
  /** A server with the device and the disk that its node has had from the beginning. */
  readonly #newServer = new Map<string, (start: number) => ServerCore>()
  readonly #listeners: ((events: readonly Event[]) => void)[] = []
  readonly #start: WorldStart | null
  #restarts = 0
  readonly #arrivals: ArrivalFeed

  constructor(plan: WorldPlan, options: WorldOptions) {
    this.plan = plan
    this.#startedAt = plan.clock.startMs
    if (options.onEvents !== undefined) this.#listeners.push(options.onEvents)
    this.clock = new VirtualClock(this.#startedAt)
    this.#arrivals = new ArrivalFeed(this.clock, (task) => this.submit(task))
    this.random = createSeededRandom(options.seed)
    this.#journal = options.isJournalOff === true ? null : new Journal(options.journalSink ?? null)
    this.collector = new Collector(options.onOutcome ?? null)
    const areHeartbeatsElided = options.areHeartbeatsEnacted !== true
    const { start = [], keepsTasks = false } = options
    this.#start = start.length === 0 ? null : worldStart(plan, start)
    for (const task of start) this.#expect(task)
    this.faults = this.#faultStage(plan, options)
    this.faults?.onSetBack(({ stored }) => this.collector.setBack(stored.openTasks))
    this.#areHeartbeatsElided = areHeartbeatsElided && this.faults === null
    if (this.faults !== null) {
      this.#controller = this.faults.controller
      this.#planForeign()
      return
    }
    const bus = new SimBus({ clock: this.clock, mode: options.busMode ?? 'reference', delayMs: 0 })
    const initial = this.stored ?? EMPTY_STATE
    const store =
      options.store?.(initial) ??
      createMemoryStore({ retainFinished: keepsTasks, retainEvents: 0, isForgetful: !keepsTasks, initial })
    this.#controller = createController(
      { clock: this.clock, random: this.random, bus: options.controllerBus?.(bus) ?? bus, store },
      {
        initialConfig: plan.config,
        ownerLimits: plan.ownerLimits ?? NO_OWNER_LIMITS,
        areHeartbeatsElided,
        victimOverride: options.victimOverride ?? null,
        onEvents: (events) => this.#onEvents(events),
      },
    )
    for (const node of plan.nodes) this.#addServer(node, bus, areHeartbeatsElided)
    this.#planForeign()
  }

  /** Where faults end controllers: the one that began last. */
  get controller(): Controller {
    return this.faults?.controller ?? this.#controller
  }

  get isControllerUp(): boolean {
    return this.faults?.isControllerUp ?? true
  }

  /** By node id; of those whose process runs. */
  get servers(): ReadonlyMap<string, ServerCore> {
    return this.faults?.servers ?? this.#servers
  }

  /** What it began with; null: an empty cluster. */
  get stored(): StoredState | null {
    return this.#start?.stored ?? null
  }

  get nowMs(): DurationMs {
    return this.clock.now() - this.#startedAt
  }

  /** Measures what deciding takes, whichever controllers decide. */
  timeDecisions(stopwatch: DecisionWatch): void {
    if (this.faults === null) this.#controller.engine.stopwatch = stopwatch
    else this.faults.timeDecisions(stopwatch)
  }

  /** Starts the controller and the servers, and gives nodes their groups and overrides. */
  async start(): Promise<void> {
    if (this.faults === null) {
      await this.controller.start()
      for (const server of this.#servers.values()) server.start()
    } else await this.faults.start()
    this.clock.run(this.#startedAt, () => false)
    if (this.#start === null) this.#applyNodeSettings()
    this.clock.run(this.#startedAt, () => false)
    this.faults?.plan()
  }

  /** Also calls this with every batch of events, after those that asked before. */
  listen(listener: (events: readonly Event[]) => void): void {
    this.#listeners.push(listener)
  }

  /** Submits this workload as time goes by. */
  feed(arrivals: ArrivalSource): void {
    this.#arrivals.begin(arrivals)
  }

  /**
   * Runs until the instant, or until workload and tasks are done. Reading from disk is the only thing that
   * waits.
   */
  async runUntil(untilMs: DurationMs | null, isDone: () => boolean = () => false): Promise<void> {
    const until = untilMs === null ? Infinity : this.#startedAt + untilMs
    for (;;) {
      if (this.#arrivals.lacksNext) {
        if (this.#arrivals.needsFill) await this.#arrivals.fill()
        this.#arrivals.pull()
      }
      const isInterrupted = (): boolean => isDone() || this.#arrivals.needsFill
      if (this.faults === null) this.clock.run(until, isInterrupted)
      else await this.#runWithPromises(this.faults, until, isInterrupted)
      if (isDone() || !this.#arrivals.needsFill) break
    }
    if (untilMs !== null && !isDone()) this.clock.advanceTo(until)
  }

  /**
   * No more arrivals, no task is open but those that an operator left to run for ever, and nothing is broken
   * or will be.
   */
  isIdle(): boolean {
    return this.#arrivals.isOver && this.collector.awaited <= this.#endless.size && this.areFaultsOver
  }

  get areFaultsOver(): boolean {
    return this.faults?.isOver ?? true
  }

  /** VRAM of that GPU that others hold. */
  foreignMib(nodeId: string, gpu: number): Mib {
    return this.deviceOf(nodeId)?.gpus()[gpu]?.foreign_mib ?? 0
  }

  /** The growing counters of the cluster since the start, whichever controllers kept them. */
  counters(): Counters {
    return this.faults?.counters() ?? this.controller.views.clusterCounters()
  }

  swapTotals(): SwapTotals {
    return this.faults?.swapTotals() ?? swapTotalsOf(this.controller)
  }

  digest(): string | null {
    return this.#journal?.digest() ?? null
  }

  metrics(): Metrics {
    return metricsOf({
      collector: this.collector,
      counters: this.counters(),
      windowMs: this.nowMs,
      gpus: this.plan.nodes.reduce((sum, node) => sum + node.gpuCount, 0),
      swaps: this.swapTotals(),
      jain: this.controller.views.swapJain(),
      unsignalledWaitMs: this.#unsignalledWaitMs(),
      fitNowhere: this.#fitNowhere(),
    })
  }

  /** Of those that wait, and are not held back. */
  #fitNowhere(): number {
    const { pendingCount, waiting, tasks } = this.controller.engine.cluster
    if (pendingCount === waiting.tasks) return 0
    let count = 0
    for (const { placement, isHeld, isFeasible } of tasks.values())
      if (placement === null && !isHeld && !isFeasible) count += 1
    return count
  }

  /** Null where every server signals that a task wants the GPU. */
  #unsignalledWaitMs(): DurationMs | null {
    const unaware = this.plan.nodes.filter(({ signalsWanted }) => signalsWanted === false)
    if (unaware.length === 0) return null
    return unaware.reduce((sum, node) => sum + (this.deviceOf(idOfNode(node))?.unsignalledWaitMs ?? 0), 0)
  }

  /** The server process dies and is back at once; its tasks live on (R4). Call between steps of the clock. */
  restartServer(nodeId: string): void {
    const newServer = this.#newServer.get(nodeId)
    if (newServer === undefined) throw new Error(`no server ${nodeId}`)
    this.#servers.get(nodeId)?.stop()
    this.#restarts += 1
    const server = newServer(1 + this.#restarts)
    this.#servers.set(nodeId, server)
    server.start()
  }

  /** Hands one task in, as a client would. */
  submit(task: SimTask): void {
    const { id } = task.request
    this.workload.add(id, task.work, task.allocSteps, task.stopTakesMs)
    this.collector.submittedTask(id, this.clock.now(), aloneMsOf(task.work))
    const request =
      task.request.command === null ? { ...task.request, command: SIMULATED_COMMAND } : task.request
    if (this.faults === null) {
      this.controller.commands.submitTask(request, (answer) => {
        if (!answer.ok) throw new SubmissionRefused(id, answer.refusal)
      })
    } else this.faults.submit(request)
    if (task.cancelAt !== null) this.#planCancel(id, task.cancelAt)
  }

  /** A task that is there at the start: its work is known, its outcome is awaited. */
  #expect({ request, work, allocSteps, cancelAt, state, stopTakesMs }: StartTask): void {
    const { startMs } = this.plan.clock
    const isNew = state.firstStartedAgoMs === null
    this.workload.add(request.id, work, allocSteps, stopTakesMs)
    this.collector.submittedTask(request.id, startMs - state.submittedAgoMs, isNew ? aloneMsOf(work) : null)
    if (state.firstStartedAgoMs !== null)
      this.collector.startedBefore(request.id, startMs - state.firstStartedAgoMs)
    if (cancelAt !== null) this.#planCancel(request.id, cancelAt)
  }

  #faultStage(
    plan: WorldPlan,
    { seed, busMode = 'reference', mayBreak = false, store, watch, victimOverride }: WorldOptions,
  ): FaultInjector | null {
    const { faults = [], nodes, config, ownerLimits = NO_OWNER_LIMITS } = plan
    if (faults.length === 0 && !mayBreak && watch === undefined) return null
    const { clock, random } = this
    return new FaultInjector({
      faults,
      nodes,
      config,
      ownerLimits,
      victimOverride: victimOverride ?? null,
      seed,
      random,
      clock,
      busMode,
      workload: this.workload,
      start: this.#start,
      ...(store === undefined ? {} : { newStore: store }),
      ...(watch === undefined ? {} : { watch }),
      onDurable: (events) => this.#onEvents(events),
      onNote: (phase, fault) => this.#journal?.note({ at: clock.now(), [phase]: fault }),
    })
  }

  /** What follows from a promise runs before time goes on. */
  async #runWithPromises(faults: FaultInjector, until: Instant, isDone: () => boolean): Promise<void> {
    await faults.settle()
    while (!isDone() && this.clock.step(until)) if (faults.needsSettling) await faults.settle()
  }

  #addServer(node: ScenarioNode, bus: SimBus, areHeartbeatsElided: boolean): void {
    const id = idOfNode(node)
    const device = new SimulatedDevice(this.clock, node, this.workload)
    const home = this.#start?.nodeStateOf(id)
    const storage = createMemoryStorage(0, home?.state)
    for (const initialProcess of home?.initialProcesses ?? []) device.addInitialProcess(initialProcess)
    this.#devices.set(id, device)
    const newServer = (start: number): ServerCore => {
      const random = this.random.stream(serverStream(node, start))
      return simulatedServer(node, { clock: this.clock, random, bus, device, storage, areHeartbeatsElided })
    }
    this.#newServer.set(id, newServer)
    this.#servers.set(id, newServer(1))
  }

  /** By node id; undefined while its machine is off. */
  deviceOf(nodeId: string): SimulatedDevice | undefined {
    return this.faults === null ? this.#devices.get(nodeId) : this.faults.deviceOf(nodeId)
  }

  #planForeign(): void {
    planForeignMemory(this.plan.nodes, this.clock, {
      serverOf: (nodeId) => this.servers.get(nodeId),
      deviceOf: (nodeId) => this.deviceOf(nodeId),
      reserveMib: (nodeId) => this.controller.views.node(nodeId)?.gpus[0]?.reserveMib ?? 0,
    })
  }

  #applyNodeSettings(): void {
    const { commands } = this.controller
    for (const node of this.plan.nodes) {
      const id = idOfNode(node)
      if (node.isCordoned === true) commands.setCordon(id, true, null, () => {})
      if (node.overcommitPercent === null && node.safetyReserveMib === null) continue
      commands.putNodeConfig(
        id,
        { overcommitPercent: node.overcommitPercent, reserveMib: node.safetyReserveMib },
        null,
        () => {},
      )
    }
    for (const group of groupsOf(this.plan.nodes)) commands.putGroup(group, false, null, () => {})
  }

  /** A task that an operator has submitted: it counts as any other. */
  #submittedByHand(id: string, at: Instant): void {
    if (this.collector.knows(id)) return
    const work = workOfCommand(this.controller.views.openTask(id)?.spec.command ?? null)
    if (work === null) this.#endless.add(id)
    this.collector.submittedTask(id, at, work === null ? null : aloneMsOf(work))
  }

  #planCancel(id: string, atMs: DurationMs): void {
    this.cancels.set(id, atMs)
    const cancel = (): void => {
      if (this.faults === null) this.controller.commands.cancelTask(id, 'its owner', () => {})
      else this.faults.cancel(id)
    }
    this.clock.at(this.#startedAt + atMs, cancel, RANK_ARRIVAL)
  }

  readonly #nodes = (): Iterable<Node> => this.controller.views.nodes()
  readonly #serverOf = (id: string): ServerCore | undefined => this.servers.get(id)

  #onEvents(events: readonly Event[]): void {
    this.#journal?.record(events)
    for (const { kind, taskId, at } of events)
      if (kind === 'task_submitted' && taskId !== null) this.#submittedByHand(taskId, at)
    this.collector.record(events)
    for (const { kind, taskId } of events) {
      if (kind !== 'task_finished' || taskId === null) continue
      if (this.faults === null) this.workload.forget(taskId)
      if (this.cancels.size > 0) this.cancels.delete(taskId)
      if (this.#endless.size > 0) this.#endless.delete(taskId)
    }
    if (this.#areHeartbeatsElided) forwardReserveChanges(events, this.#nodes, this.#serverOf)
    for (const listener of this.#listeners) listener(events)
  }
}
