/**
 * A simulated world: the production controller and the production GPU-server cores over a virtual clock, a
 * simulated bus and modelled devices. Only physics is modelled.
 */
import type { Controller } from '../../controller/controller.ts'
import { createMemoryLease } from '../../controller/adapters/memory-leadership.ts'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { Event } from '../../controller/model/event.ts'
import { NO_OWNER_LIMITS } from '../../controller/model/owner-limits.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import { DEFAULT_LEASE_MS } from '../../controller/ports/leadership.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Store, StoredState, TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import { workOfCommand } from '../fleet/command-work.ts'
import { Fleet } from '../fleet/fleet.ts'
import { planForeignMemory } from '../fleet/foreign-memory.ts'
import { forwardReserveChanges } from '../fleet/forward-reserve.ts'
import { OpenWorkload } from '../fleet/open-workload.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'
import { VirtualClock } from '../kernel/virtual-clock.ts'
import { LinkFaults } from '../network/link-faults.ts'
import { SimBus } from '../network/sim-bus.ts'
import type { BusMode } from '../network/sim-bus.ts'
import { Collector } from '../results/collector.ts'
import type { TaskOutcome } from '../results/collector.ts'
import { FaultTally } from '../results/fault-tally.ts'
import { Journal } from '../results/journal.ts'
import type { JournalSink } from '../results/journal.ts'
import { metricsOf } from '../results/result.ts'
import type { Metrics } from '../scenario/metrics.ts'
import { SUCCESSION_KINDS } from '../scenario/fault.ts'
import type { FaultItem, FaultKind } from '../scenario/fault.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { StartTask } from '../scenario/generate.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { Scenario, SimTask } from '../scenario/scenario.ts'
import { aloneMsOf } from '../trace/work.ts'
import { ArrivalFeed } from './arrival-feed.ts'
import { Client } from './client.ts'
import { ControllerHost } from './controller-host.ts'
import type { ControllerWatch, Succession, VictimOverride } from './controller-process.ts'
import { FaultInjector } from './fault-injector.ts'
import { Microtasks } from './microtasks.ts'
import { healthyDisk } from './process-store.ts'
import { groupsOf, SIMULATED_COMMAND, worldStart } from './start-world.ts'
import type { WorldStart } from './start-world.ts'
import { StoreHistory } from './store-history.ts'

export interface WorldOptions {
  readonly seed: number
  readonly busMode?: BusMode
  /** Sends all heartbeats. Otherwise those that change nothing are left out, with equal decisions. */
  readonly areHeartbeatsEnacted?: boolean
  readonly isJournalOff?: boolean
  readonly journalSink?: JournalSink | null
  readonly onOutcome?: ((outcome: TaskOutcome) => void) | null
  /** Called with every event once it is durable, after the journal. */
  readonly onEvents?: (events: readonly Event[]) => void
  /** Creates the store from its first state. Left out: a store in memory that forgets ended tasks. */
  readonly store?: (initial: StoredState) => Store
  /** The store keeps ended tasks, for reading. */
  readonly keepsTasks?: boolean
  /** Tasks that exist at the start. */
  readonly start?: readonly StartTask[]
  /** Faults beyond the plan may be injected, so that all heartbeats are sent. */
  readonly mayBreak?: boolean
  /** Wraps the controller's end of the bus. */
  readonly controllerBus?: (bus: Bus) => Bus
  /** Sees all inputs of a controller; called at each start of one. Such a world may break. */
  readonly watch?: () => ControllerWatch
  /** Observes swap-out decisions, and may replace a victim. */
  readonly victimOverride?: VictimOverride
}

/** The fleet, configuration and faults of a scenario. */
export type WorldPlan = Pick<Scenario, 'clock' | 'nodes' | 'config' | 'ownerLimits'> &
  Partial<Pick<Scenario, 'faults'>>

export class World {
  readonly clock: VirtualClock
  readonly random: Random
  readonly collector: Collector
  readonly plan: WorldPlan
  /** The work of the tasks. */
  readonly workload = new OpenWorkload()
  readonly bus: SimBus
  readonly controllers: ControllerHost
  readonly fleet: Fleet
  /** Null in a world without faults. */
  readonly faults: FaultInjector | null
  /** When the owners will cancel open tasks, since the start. */
  readonly cancels = new Map<string, DurationMs>()
  readonly #client: Client
  readonly #journal: Journal | null
  /** Open tasks from REST whose command describes no work: they run until an operator ends them. */
  readonly #endless = new Set<string>()
  readonly #startedAt: Instant
  readonly #areHeartbeatsElided: boolean
  readonly #microtasks = new Microtasks()
  readonly #listeners: ((events: readonly Event[]) => void)[] = []
  readonly #start: WorldStart | null
  readonly #arrivals: ArrivalFeed

  constructor(plan: WorldPlan, options: WorldOptions) {
    const { seed, start = [], mayBreak = false, watch } = options
    const { nodes, faults = [], config, ownerLimits = NO_OWNER_LIMITS } = plan
    this.plan = plan
    this.#startedAt = plan.clock.startMs
    if (options.onEvents !== undefined) this.#listeners.push(options.onEvents)
    const clock = new VirtualClock(this.#startedAt)
    const random = createSeededRandom(seed)
    this.clock = clock
    this.random = random
    this.#arrivals = new ArrivalFeed(clock, (task) => this.submit(task))
    this.#journal = options.isJournalOff === true ? null : new Journal(options.journalSink ?? null)
    this.collector = new Collector((id) => this.controller.views.openTask(id), options.onOutcome ?? null)
    this.#start = start.length === 0 ? null : worldStart(plan, start)
    for (const task of start) this.#expect(task)

    const isReliable = faults.length === 0 && !mayBreak && watch === undefined
    this.#areHeartbeatsElided = isReliable && options.areHeartbeatsEnacted !== true
    const areHeartbeatsElided = this.#areHeartbeatsElided
    const tally = new FaultTally()
    const links = new LinkFaults(random.stream('faults/links'), tally)
    const bus = new SimBus({
      ...{ clock, mode: options.busMode ?? 'reference' },
      ...(isReliable ? {} : { links }),
    })
    this.bus = bus
    const disk = healthyDisk()
    const onPromise = this.#microtasks.expect
    const history = new StoreHistory({
      ...{ clock, random, onPromise, initial: this.stored },
      newStore: this.#storesOf(options, isReliable),
    })
    this.controllers = new ControllerHost({
      ...{ clock, bus, initialConfig: config, ownerLimits, areHeartbeatsElided },
      ...(options.controllerBus === undefined ? {} : { controllerBus: options.controllerBus }),
      ...(watch === undefined ? {} : { watch }),
      ...{ victimOverride: options.victimOverride ?? null, succession: successionOf(faults) },
      randomOf: (start) => (start === 1 ? random : createSeededRandom(`${seed}/controller/start ${start}`)),
      store: {
        ...{ clock, random, tally, disk, isReliable, onPromise, inner: history.store },
        onDurable: (events) => this.#onEvents(events),
      },
    })
    this.fleet = new Fleet({
      ...{
        nodes,
        clock,
        bus,
        links,
        random,
        tally,
        workload: this.workload,
        isReliable,
        areHeartbeatsElided,
      },
      nodeStateOf: (nodeId) => this.#start?.nodeStateOf(nodeId) ?? null,
    })
    this.#client = new Client({
      ...{ clock, isReliable },
      commands: () => this.controllers.commandsToAsk(),
      onAcknowledged: (taskId) => this.faults?.acknowledge(taskId),
    })
    this.faults = isReliable
      ? null
      : new FaultInjector({
          ...{ clock, tally, bus, disk, history, fleet: this.fleet, controllers: this.controllers },
          plan: { faults, nodes, config, seed },
          client: this.#client,
          openTasks: this.stored?.openTasks ?? [],
          onNote: (phase, fault) => this.#journal?.note({ at: clock.now(), [phase]: fault }),
        })
    this.faults?.onSetBack(({ stored }) => this.collector.setBack(stored.openTasks))
    this.#planForeign()
  }

  /** The controller that began last. */
  get controller(): Controller {
    return this.controllers.controller
  }

  get isControllerUp(): boolean {
    return this.controllers.isUp
  }

  /** The state at the start; null: an empty cluster. */
  get stored(): StoredState | null {
    return this.#start?.stored ?? null
  }

  get nowMs(): DurationMs {
    return this.clock.now() - this.#startedAt
  }

  /** Starts the controller and the servers, and gives nodes their groups and overrides. */
  async start(): Promise<void> {
    await this.controllers.start()
    await this.#microtasks.settle()
    this.fleet.start()
    this.clock.run(this.#startedAt, () => false)
    if (this.#start === null) this.#applyNodeSettings()
    this.clock.run(this.#startedAt, () => false)
    this.faults?.plan()
  }

  /** Calls this with every batch of events too, after earlier listeners. */
  listen(listener: (events: readonly Event[]) => void): void {
    this.#listeners.push(listener)
  }

  /** Submits this workload over time. */
  feed(arrivals: ArrivalSource): void {
    this.#arrivals.begin(arrivals)
  }

  /** Runs until the instant, or until `isDone`. Waits only for reading from disk. */
  async runUntil(untilMs: DurationMs | null, isDone: () => boolean = () => false): Promise<void> {
    const until = untilMs === null ? Infinity : this.#startedAt + untilMs
    for (;;) {
      if (this.#arrivals.lacksNext) {
        if (this.#arrivals.needsFill) await this.#arrivals.fill()
        this.#arrivals.pull()
      }
      let isInterrupted = false
      const checkInterruption = (): boolean => (isInterrupted = isDone() || this.#arrivals.needsFill)
      do {
        await this.#microtasks.settle()
        this.clock.run(until, () => this.#microtasks.isPending || checkInterruption())
      } while (!isInterrupted && this.#microtasks.isPending)
      if (isDone() || !this.#arrivals.needsFill) break
    }
    if (untilMs !== null && !isDone()) this.clock.advanceTo(until)
  }

  /** No more arrivals, only tasks without an end are open, and no fault is active or planned. */
  isIdle(): boolean {
    return this.#arrivals.isOver && this.collector.awaited <= this.#endless.size && this.areFaultsOver
  }

  get areFaultsOver(): boolean {
    return this.faults?.isOver ?? true
  }

  /** The store is behind its nodes, and no planned fault settles that. */
  get isLeftBehind(): boolean {
    return this.faults?.isLeftBehind ?? false
  }

  /** VRAM of the GPU used by other processes. */
  foreignMib(nodeId: string, gpu: number): Mib {
    return this.fleet.deviceOf(nodeId)?.gpus()[gpu]?.foreign_mib ?? 0
  }

  digest(): string | null {
    return this.#journal?.digest() ?? null
  }

  metrics(): Metrics {
    return metricsOf({
      collector: this.collector,
      counters: this.controllers.counters(),
      windowMs: this.nowMs,
      gpus: this.plan.nodes.reduce((sum, node) => sum + node.gpuCount, 0),
      swaps: this.controllers.swapTotals(),
      jain: this.controller.views.swapJain(),
      unsignalledWaitMs: this.#unsignalledWaitMs(),
      fitNowhere: this.#fitNowhere(),
    })
  }

  /** Pending tasks that are not on hold and fit on no node. */
  #fitNowhere(): number {
    const { pendingCount, waiting, tasks } = this.controller.cluster
    if (pendingCount === waiting.tasks) return 0
    let count = 0
    for (const { placement, isHeld, isFeasible } of tasks.values())
      if (placement === null && !isHeld && !isFeasible) count += 1
    return count
  }

  /** Null if every server signals that a task wants the GPU. */
  #unsignalledWaitMs(): DurationMs | null {
    const unaware = this.plan.nodes.filter(({ signalsWanted }) => signalsWanted === false)
    if (unaware.length === 0) return null
    return unaware.reduce(
      (sum, node) => sum + (this.fleet.deviceOf(idOfNode(node))?.unsignalledWaitMs ?? 0),
      0,
    )
  }

  /** Submits one task, as a client would. */
  submit(task: SimTask): void {
    const { id } = task.request
    this.workload.add(id, task.work, task.allocSteps, task.stopTakesMs)
    this.collector.submittedTask(id, this.clock.now(), aloneMsOf(task.work))
    const request =
      task.request.command === null ? { ...task.request, command: SIMULATED_COMMAND } : task.request
    this.#client.submit(request)
    if (task.cancelAt !== null) this.#planCancel(id, task.cancelAt)
  }

  /** A task that is present at the start: its work is known, its outcome is awaited. */
  #expect({ request, work, allocSteps, cancelAt, state, stopTakesMs }: StartTask): void {
    const { startMs } = this.plan.clock
    const isNew = state.firstStartedAgoMs === null
    this.workload.add(request.id, work, allocSteps, stopTakesMs)
    this.collector.submittedTask(request.id, startMs - state.submittedAgoMs, isNew ? aloneMsOf(work) : null)
    if (state.firstStartedAgoMs !== null)
      this.collector.startedBefore(request.id, startMs - state.firstStartedAgoMs)
    if (cancelAt !== null) this.#planCancel(request.id, cancelAt)
  }

  /** A store that faults may set back needs the ended tasks: a lost attempt may belong to one. */
  #storesOf({ store, keepsTasks = false }: WorldOptions, isReliable: boolean): StoreMaker {
    const retainFinished = keepsTasks || kindsIn(this.plan.faults ?? []).includes('store_set_back')
    return (initial, initialFinished) =>
      store?.(initial) ??
      createMemoryStore({
        ...{ retainFinished, retainEvents: 0, initial, initialFinished },
        isForgetful: isReliable && !keepsTasks,
      })
  }

  #planForeign(): void {
    planForeignMemory(this.plan.nodes, this.clock, {
      serverOf: (nodeId) => this.fleet.servers.get(nodeId),
      deviceOf: (nodeId) => this.fleet.deviceOf(nodeId),
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

  /** A task that an operator has submitted counts like any other. */
  #submittedByHand(id: string, at: Instant): void {
    if (this.collector.knows(id)) return
    const work = workOfCommand(this.controller.views.openTask(id)?.spec.command ?? null)
    if (work === null) this.#endless.add(id)
    this.collector.submittedTask(id, at, work === null ? null : aloneMsOf(work))
  }

  #planCancel(id: string, atMs: DurationMs): void {
    this.cancels.set(id, atMs)
    this.clock.at(this.#startedAt + atMs, () => this.#client.cancel(id), RANK_ARRIVAL)
  }

  #onEvents(events: readonly Event[]): void {
    this.faults?.record(events)
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
    if (this.#areHeartbeatsElided) forwardReserveChanges(events, this.controller.views, this.fleet.servers)
    for (const listener of this.#listeners) listener(events)
  }
}

/** Null: one controller at a time. */
function successionOf(faults: readonly FaultItem[]): Succession | null {
  return kindsIn(faults).some((kind) => SUCCESSION_KINDS.includes(kind))
    ? { lease: createMemoryLease(), leaseMs: DEFAULT_LEASE_MS }
    : null
}

function kindsIn(faults: readonly FaultItem[]): readonly FaultKind[] {
  return faults.flatMap((item) => (item.kind === 'swarm' ? item.kinds : [item.kind]))
}

type StoreMaker = (initial: StoredState, finished: readonly TaskRecord[]) => Store
