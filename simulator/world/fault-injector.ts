/**
 * The cast of a world in which things break: controllers and servers that may die, a bus and disks that may
 * fail, and clients that ask again. Production code throughout; what is enacted here is what surrounds it.
 * Every heartbeat is sent.
 */
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { Controller } from '../../controller/controller.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Event } from '../../controller/model/event.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Store, StoredState, TaskRecord } from '../../controller/ports/store.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { SimulatedDevice } from '../fleet/simulated-device.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Workload } from '../fleet/workload.ts'
import type { Fault, FaultItem } from '../scenario/fault.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'
import type { BusMode } from '../network/sim-bus.ts'
import type { InitialNodeState, WorldStart } from './start-world.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import type { DecisionWatch, SwapTotals } from './controller-host.ts'
import { ControllerHost } from './controller-host.ts'
import type { ControllerWatch, VictimOverride } from './controller-process.ts'
import { Disturbances } from './disturbances.ts'
import type { FaultNote, FaultTarget } from './fault-agenda.ts'
import { FaultAgenda } from './fault-agenda.ts'
import { FaultTally } from '../results/fault-tally.ts'
import type { FaultCounts } from '../results/fault-tally.ts'
import { FaultyBus } from '../network/faulty-bus.ts'
import { isFleetFault } from '../fleet/fleet-faults.ts'
import { FaultyFleet } from '../fleet/faulty-fleet.ts'
import { LinkFaults } from '../network/link-faults.ts'
import type { StoreDisk } from './faulty-store.ts'
import { healthyDisk } from './faulty-store.ts'
import type { NodeHost } from '../fleet/node-host.ts'
import { RetryingClient } from './retrying-client.ts'
import type { RunTracker } from '../fleet/run-tracker.ts'
import { isSilentLoss, StoreHistory } from './store-history.ts'
import type { LostHistory, SetBack } from './store-history.ts'
import { faultsDrawn, runLeaseMsOf } from './swarm.ts'

export interface FaultInjectorOptions {
  readonly faults: readonly FaultItem[]
  readonly nodes: readonly ScenarioNode[]
  readonly config: Readonly<Partial<ConfigFields>>
  readonly ownerLimits: OwnerLimits
  readonly victimOverride: VictimOverride | null
  readonly seed: number
  /** Of the world; controllers after the first have streams of their own. */
  readonly random: Random
  readonly clock: SimClock
  readonly busMode: BusMode
  readonly workload: Workload
  /** What is there when it begins; null: nothing. */
  readonly start: WorldStart | null
  /** Makes the store that outlives every controller; left out: one that keeps nothing of what is over. */
  readonly newStore?: (initial: StoredState) => Store
  readonly onDurable: (events: readonly Event[]) => void
  readonly onNote: FaultNote
  /** Sees everything that enters a controller; asked for at each start. */
  readonly watch?: () => ControllerWatch
}

/** Promises that follow from each other within one step of the clock. */
const MICROTASKS = 24

export class FaultInjector implements FaultTarget {
  readonly bus: FaultyBus
  /** Tasks whose submission was acknowledged and whose end is not durable. */
  readonly acknowledged = new Set<string>()
  /**
   * Tasks whose end is durable: a client that asks once more, because nobody answered him, may hear of one
   * that is over.
   */
  readonly #finals = new Set<string>()
  readonly #o: FaultInjectorOptions
  readonly #tally = new FaultTally()
  readonly #disk: StoreDisk = healthyDisk()
  readonly #vault: StoreHistory
  readonly #host: ControllerHost
  readonly #fleet: FaultyFleet
  readonly #client: RetryingClient
  readonly #drawn: readonly Fault[]
  readonly #agenda: FaultAgenda
  readonly #begun: (() => void)[] = []
  readonly #disturbances: Disturbances
  readonly #slow = new Set<Extract<Fault, { readonly kind: 'slow_disk' }>>()
  #mayHaveMicrotasks = false

  constructor(options: FaultInjectorOptions) {
    const { clock, seed, random, nodes, workload } = options
    this.#o = options
    const tally = this.#tally
    const links = new LinkFaults(random.stream('faults/links'), tally)
    this.bus = new FaultyBus({ clock, mode: options.busMode, weather: links })
    this.#disturbances = new Disturbances(
      clock,
      SETTLE_HEARTBEATS * heartbeatMsOf(options.config),
      runLeaseMsOf(options.config),
    )
    this.#drawn = faultsDrawn(options)
    // An attempt that such a store has lost may be of a task that it knows as final.
    const retainFinished = this.#drawn.some(({ kind }) => kind === 'store_set_back')
    const newStore = (initial: StoredState, initialFinished: readonly TaskRecord[]): Store =>
      options.newStore?.(initial) ??
      createMemoryStore({ retainFinished, retainEvents: 0, initial, initialFinished })
    const onPromise = (): void => {
      this.#mayHaveMicrotasks = true
    }
    const initial = options.start?.stored ?? null
    this.#vault = new StoreHistory({
      clock,
      random: random.stream('faults/set-back'),
      newStore,
      initial,
      onPromise,
    })
    this.#vault.listen((lost) => this.#lost(lost))
    for (const { id } of options.start?.stored.openTasks ?? []) this.acknowledged.add(id)
    this.#host = new ControllerHost({
      clock,
      bus: this.bus,
      randomOf: (start) => (start === 1 ? random : createSeededRandom(`${seed}/controller/start ${start}`)),
      store: {
        inner: this.#vault.store,
        disk: this.#disk,
        clock,
        random: random.stream('faults/store'),
        tally,
        onDurable: (events) => {
          for (const { kind, taskId } of events)
            if (kind === 'task_finished' && taskId !== null) this.#ended(taskId)
          options.onDurable(events)
        },
        onPromise,
      },
      initialConfig: options.config,
      ownerLimits: options.ownerLimits,
      victimOverride: options.victimOverride,
      tally,
      ...(options.watch === undefined ? {} : { watch: options.watch }),
      onBegun: () => {
        this.#agenda.recovered()
        this.#disturbances.begins()
        for (const listener of this.#begun) listener()
      },
    })
    const { start } = options
    const nodeStateOf = (nodeId: string): InitialNodeState | null => start?.nodeStateOf(nodeId) ?? null
    this.#fleet = new FaultyFleet({
      nodes,
      clock,
      bus: this.bus,
      links,
      random,
      workload,
      tally,
      nodeStateOf,
    })
    this.#client = new RetryingClient({
      clock,
      commands: () => (this.isControllerUp ? this.controller.commands : null),
      onAcknowledged: (taskId) => this.#finals.has(taskId) || this.acknowledged.add(taskId),
    })
    this.#agenda = new FaultAgenda({
      clock,
      startedAt: clock.now(),
      faults: this.#drawn,
      stage: this,
      tally,
      note: options.onNote,
    })
  }

  /** By node id; of those whose server process runs. */
  get servers(): ReadonlyMap<string, ServerCore> {
    return this.#fleet.servers
  }

  get runs(): RunTracker {
    return this.#fleet.runs
  }

  deviceOf(nodeId: string): SimulatedDevice | undefined {
    return this.#fleet.deviceOf(nodeId)
  }

  #ended(taskId: string): void {
    this.#finals.add(taskId)
    this.acknowledged.delete(taskId)
  }

  timeDecisions(stopwatch: DecisionWatch): void {
    this.#host.timeDecisions(stopwatch)
  }

  /** The controller that began last. */
  get controller(): Controller {
    return this.#host.controller
  }

  get isControllerUp(): boolean {
    return this.#host.isUp
  }

  /** When the one that began last was started, and read the store. */
  get controllerStartedAt(): Instant {
    return this.#host.startedAt
  }

  /** How many controllers have begun so far. */
  get controllersBegun(): number {
    return this.#host.begun
  }

  /** No fault is to come or holds, controllers are back, and every client has his answer. */
  get isOver(): boolean {
    return this.healedAt !== null && this.#host.isSettled && this.#client.isSatisfied
  }

  /** Since when nothing is broken any more; null while something is, or will be. */
  get healedAt(): Instant | null {
    return this.#host.isSettled && this.#vault.unsettled.size === 0 ? this.#agenda.healedAt : null
  }

  node(name: string): NodeHost {
    return this.#fleet.node(name)
  }

  /** What the controller knows of the node may be older than what its server knows. */
  isDisturbed(node: string): boolean {
    return this.#disturbances.isOn(node)
  }

  /** By how much the clock of the node with that id is ahead of true time. */
  aheadMs(nodeId: string): DurationMs {
    return this.#fleet.aheadMs(nodeId)
  }

  /** Begins before time goes on: controller, then servers. Faults are planned by `plan`. */
  async start(): Promise<void> {
    this.#host.start()
    await this.settle()
    this.#fleet.start()
  }

  plan(): void {
    this.#agenda.plan()
    const { clock, faults } = this.#o
    const startedAt = clock.now()
    this.#vault.plan(this.#drawn, startedAt)
    for (const item of faults)
      if (item.kind === 'swarm') clock.at(startedAt + item.healAtMs, () => this.#disarm(), RANK_DEVICE)
  }

  /** Calls with every controller that has read what is durable. */
  onControllerBegun(listener: () => void): void {
    this.#begun.push(listener)
  }

  /** Calls when the store has lost a part of its history, before a controller reads what it holds. */
  onSetBack(listener: (lost: LostHistory) => void): void {
    this.#vault.listen(listener)
  }

  submit(request: TaskRequest & { readonly id: string }): void {
    this.#client.submit(request)
  }

  cancel(taskId: string): void {
    this.#client.cancel(taskId)
  }

  counters(): Counters {
    return this.#host.counters()
  }

  swapTotals(): SwapTotals {
    return this.#host.swapTotals()
  }

  faultCounts(): FaultCounts {
    this.#fleet.settleTally()
    return this.#tally.counts()
  }

  get needsSettling(): boolean {
    return this.#mayHaveMicrotasks
  }

  /** Promises that were made or kept in this step have run when it resolves: time may go on. */
  async settle(): Promise<void> {
    while (this.#mayHaveMicrotasks) {
      this.#mayHaveMicrotasks = false
      for (let i = 0; i < MICROTASKS; i++) await Promise.resolve()
    }
  }

  /** Something more breaks, before anything else of this instant. */
  inject(fault: Fault): void {
    this.#agenda.add(fault)
  }

  // ── faults ──────────────────────────────────────────────────────────────────

  begin(fault: Fault, onFired: () => void): void {
    this.#disturbances.begin(fault)
    // What is over at once, and what is never healed, leaves its traces for a while.
    if ((fault.forMs === null || fault.forMs === 0) && !isSilentLoss(fault)) this.#disturbances.end(fault)
    if (isFleetFault(fault)) return this.#fleet.begin(fault)
    switch (fault.kind) {
      case 'restart_broker':
        this.bus.stopBroker()
        return this.#tally.fires(fault.kind)
      case 'restart_controller':
        this.#host.stayAway()
        return this.#tallyIf(this.#host.stop(), fault)
      case 'crash_controller':
        return this.#crashController(fault, onFired)
      case 'second_controller':
        this.#host.beginSecond(fault.forMs === null)
        return this.#tally.fires(fault.kind)
      case 'store_set_back':
        return this.#setBackStore(fault)
      case 'slow_disk':
        this.#slow.add(fault)
        return this.#refreshDisk()
      case 'fsync_error':
        this.#disk.failingFsyncs += 1
        return
      case 'disk_full':
        this.#disk.fullCount += 1
        return
    }
  }

  end(fault: Fault): void {
    if (!isSilentLoss(fault)) this.#disturbances.end(fault)
    if (isFleetFault(fault)) return this.#fleet.end(fault)
    switch (fault.kind) {
      case 'fsync_error':
        return
      case 'restart_broker':
        if (this.bus.startBroker()) this.#fleet.reconnected()
        return
      case 'restart_controller':
      case 'crash_controller':
      case 'store_set_back':
        return this.#host.comeBack()
      case 'second_controller':
        return this.#host.endSecond()
      case 'slow_disk':
        this.#slow.delete(fault)
        return this.#refreshDisk()
      case 'disk_full':
        this.#disk.fullCount -= 1
        return
    }
  }

  #crashController(fault: Extract<Fault, { readonly kind: 'crash_controller' }>, onFired: () => void): void {
    const { atPoint, forMs } = fault
    if (atPoint === null) {
      if (forMs !== null) this.#host.stayAway()
      return this.#tallyIf(this.#host.crash(), fault)
    }
    const onCrash = (): void => {
      this.#tally.fires(fault.kind)
      if (forMs !== null) this.#host.stayAway()
      onFired()
    }
    this.#disk.crashPoints.push({ point: atPoint, onCrash })
  }

  #setBackStore(fault: SetBack): void {
    if (fault.forMs !== null) this.#host.stayAway()
    this.#host.crash()
    this.#vault.setBack(fault)
  }

  /** Whatever clients were told of and the store no longer has is lost; what it has again has not ended. */
  #lost({ fault, stored, settled }: LostHistory): void {
    this.#tally.fires(fault.kind)
    this.acknowledged.clear()
    for (const { id } of stored.openTasks) {
      this.acknowledged.add(id)
      this.#finals.delete(id)
    }
    for (const earlier of settled) this.#disturbances.end(earlier)
    this.#agenda.recovered()
  }

  #refreshDisk(): void {
    this.#disk.slowMs = Math.max(0, ...[...this.#slow].map(({ ms }) => ms))
  }

  /** Whatever still lies in wait for a commit does so no more. */
  #disarm(): void {
    this.#disk.crashPoints.length = 0
    this.#disk.failingFsyncs = 0
    this.#host.disarm()
  }

  #tallyIf(hasFired: boolean, { kind }: Fault): void {
    if (hasFired) this.#tally.fires(kind)
  }
}

/**
 * So many heartbeats after a fault everybody has been heard; the longest pause between two tries (10 s, 12
 * with jitter) is less.
 */
const SETTLE_HEARTBEATS = 6

function heartbeatMsOf(config: Readonly<Partial<ConfigFields>>): DurationMs {
  return Math.max(5, config.heartbeat_seconds ?? DEFAULT_CONFIG.heartbeat_seconds) * 1000
}
