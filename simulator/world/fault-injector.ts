/**
 * Injects the faults of a plan into a world: controllers and servers die, the bus and disks fail. It also
 * knows what the rules about faults need: acknowledged tasks, disturbed nodes, and since when all is well.
 */
import type { ConfigFields } from '../../controller/model/config.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import type { Event } from '../../controller/model/event.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { isFleetFault } from '../fleet/fleet-faults.ts'
import type { SimBus } from '../network/sim-bus.ts'
import type { FaultCounts, FaultTally } from '../results/fault-tally.ts'
import type { Fault } from '../scenario/fault.ts'
import type { Client } from './client.ts'
import type { ControllerHost } from './controller-host.ts'
import { Disturbances } from './disturbances.ts'
import type { FaultNote, FaultTarget } from './fault-agenda.ts'
import { FaultAgenda } from './fault-agenda.ts'
import type { StoreDisk } from './process-store.ts'
import { isSilentLoss } from './store-history.ts'
import type { LostHistory, SetBack, StoreHistory } from './store-history.ts'
import { faultsDrawn, runLeaseMsOf } from './swarm.ts'
import type { FaultPlan } from './swarm.ts'

export interface FaultInjectorOptions {
  readonly plan: FaultPlan
  readonly clock: Clock
  readonly tally: FaultTally
  readonly bus: SimBus
  readonly fleet: Fleet
  readonly controllers: ControllerHost
  readonly history: StoreHistory
  readonly disk: StoreDisk
  readonly client: Client
  /** Tasks that are open at the start. */
  readonly openTasks: readonly { readonly id: string }[]
  readonly onNote: FaultNote
}

export class FaultInjector implements FaultTarget {
  /** Tasks whose submission was acknowledged and whose end is not durable. */
  readonly acknowledged = new Set<string>()
  /** Tasks whose end is durable. A repeated request may be acknowledged after the end of its task. */
  readonly #finals = new Set<string>()
  readonly #o: FaultInjectorOptions
  readonly #drawn: readonly Fault[]
  readonly #agenda: FaultAgenda
  readonly #disturbances: Disturbances
  readonly #slow = new Set<Extract<Fault, { readonly kind: 'slow_disk' }>>()

  constructor(options: FaultInjectorOptions) {
    const { plan, clock, tally, controllers, history, openTasks } = options
    this.#o = options
    this.#disturbances = new Disturbances(
      clock,
      SETTLE_HEARTBEATS * heartbeatMsOf(plan.config),
      runLeaseMsOf(plan.config),
    )
    this.#drawn = faultsDrawn(plan)
    for (const { id } of openTasks) this.acknowledged.add(id)
    history.listen((lost) => {
      controllers.setBack(lost.stored.marks.epoch)
      this.#lost(lost)
    })
    controllers.onBegun(() => {
      this.#agenda.recovered()
      this.#disturbances.begins()
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

  /** No fault is active or planned, controllers run, and every client has its answer. */
  get isOver(): boolean {
    return this.healedAt !== null && this.#o.controllers.isSettled && this.#o.client.isSatisfied
  }

  /** No fault is active or planned, and a node is ahead of the store, which only an operator can settle. */
  get isLeftBehind(): boolean {
    return this.#agenda.healedAt !== null && this.#o.history.unsettled.size > 0
  }

  /** Since when nothing is broken; null while something is, or will be. */
  get healedAt(): Instant | null {
    const { controllers, history } = this.#o
    return controllers.isSettled && history.unsettled.size === 0 ? this.#agenda.healedAt : null
  }

  /** The controller's knowledge of the node may be older than the server's. */
  isDisturbed(node: string): boolean {
    return this.#disturbances.isOn(node)
  }

  plan(): void {
    this.#agenda.plan()
    const { clock, plan, history } = this.#o
    const startedAt = clock.now()
    history.plan(this.#drawn, startedAt)
    for (const item of plan.faults)
      if (item.kind === 'swarm') clock.at(startedAt + item.healAtMs, () => this.#disarm(), RANK_DEVICE)
  }

  acknowledge(taskId: string): void {
    if (!this.#finals.has(taskId)) this.acknowledged.add(taskId)
  }

  /** These events are durable. */
  record(events: readonly Event[]): void {
    for (const { kind, taskId } of events) {
      if (kind !== 'task_finished' || taskId === null) continue
      this.#finals.add(taskId)
      this.acknowledged.delete(taskId)
    }
  }

  /** Calls when the store has lost a part of its history, before a controller reads the rest. */
  onSetBack(listener: (lost: LostHistory) => void): void {
    this.#o.history.listen(listener)
  }

  faultCounts(): FaultCounts {
    this.#o.fleet.settleTally()
    return this.#o.tally.counts()
  }

  /** Injects one more fault, before anything else of this instant. */
  inject(fault: Fault): void {
    this.#agenda.add(fault)
  }

  begin(fault: Fault, onFired: () => void): void {
    this.#disturbances.begin(fault)
    // A fault without end, or that ends at once, disturbs for a while.
    if ((fault.forMs === null || fault.forMs === 0) && !isSilentLoss(fault)) this.#disturbances.end(fault)
    if (isFleetFault(fault)) return this.#o.fleet.begin(fault)
    switch (fault.kind) {
      case 'restart_broker':
        this.#o.bus.stopBroker()
        return this.#o.tally.fires(fault.kind)
      case 'restart_controller':
        this.#o.controllers.stayAway(fault)
        return this.#tallyIf(this.#o.controllers.stop(), fault)
      case 'crash_controller':
        return this.#crashController(fault, onFired)
      case 'second_controller':
        this.#o.controllers.beginSecond(fault.forMs === null)
        return this.#o.tally.fires(fault.kind)
      case 'lease_lost':
        return this.#tallyIf(this.#o.controllers.loseLease(fault, fault.how), fault)
      case 'store_frozen':
      case 'store_failover':
        this.#o.controllers.loseStore(fault, fault.kind === 'store_failover')
        return this.#o.tally.fires(fault.kind)
      case 'store_set_back':
        return this.#setBackStore(fault)
      case 'slow_disk':
        this.#slow.add(fault)
        return this.#refreshDisk()
      case 'fsync_error':
        this.#o.disk.failingFsyncs += 1
        return
      case 'disk_full':
        this.#o.disk.fullCount += 1
        return
    }
  }

  end(fault: Fault): void {
    if (!isSilentLoss(fault)) this.#disturbances.end(fault)
    if (isFleetFault(fault)) return this.#o.fleet.end(fault)
    switch (fault.kind) {
      case 'fsync_error':
        return
      case 'restart_broker':
        if (this.#o.bus.startBroker()) this.#o.fleet.reconnected()
        return
      case 'restart_controller':
      case 'crash_controller':
      case 'store_set_back':
        return this.#o.controllers.comeBack(fault)
      case 'second_controller':
        return this.#o.controllers.endSecond()
      case 'lease_lost':
        return this.#o.controllers.regainLease(fault, fault.how)
      case 'store_frozen':
      case 'store_failover':
        return this.#o.controllers.regainLease(fault, 'cut')
      case 'slow_disk':
        this.#slow.delete(fault)
        return this.#refreshDisk()
      case 'disk_full':
        this.#o.disk.fullCount -= 1
        return
    }
  }

  #crashController(fault: Extract<Fault, { readonly kind: 'crash_controller' }>, onFired: () => void): void {
    const { atPoint, forMs } = fault
    if (atPoint === null) {
      if (forMs !== null) this.#o.controllers.stayAway(fault)
      return this.#tallyIf(this.#o.controllers.crash(), fault)
    }
    const onCrash = (): void => {
      this.#o.tally.fires(fault.kind)
      if (forMs !== null) this.#o.controllers.stayAway(fault)
      onFired()
    }
    this.#o.disk.crashPoints.push({ point: atPoint, onCrash })
  }

  #setBackStore(fault: SetBack): void {
    if (fault.forMs !== null) this.#o.controllers.stayAway(fault, 'all')
    this.#o.controllers.crashAll()
    this.#o.history.setBack(fault)
  }

  /** Only tasks that the store still has count as acknowledged, and open ones have not ended. */
  #lost({ fault, stored, settled }: LostHistory): void {
    this.#o.tally.fires(fault.kind)
    this.acknowledged.clear()
    for (const { id } of stored.openTasks) {
      this.acknowledged.add(id)
      this.#finals.delete(id)
    }
    for (const earlier of settled) this.#disturbances.end(earlier)
    this.#agenda.recovered()
  }

  #refreshDisk(): void {
    this.#o.disk.slowMs = Math.max(0, ...[...this.#slow].map(({ ms }) => ms))
  }

  /** Removes the faults that wait for a commit or command. */
  #disarm(): void {
    this.#o.disk.crashPoints.length = 0
    this.#o.disk.failingFsyncs = 0
    this.#o.controllers.disarm()
  }

  #tallyIf(hasFired: boolean, { kind }: Fault): void {
    if (hasFired) this.#o.tally.fires(kind)
  }
}

/**
 * Heartbeats after which every server has been in contact since a fault: more than the longest pause between
 * two tries (12 s).
 */
const SETTLE_HEARTBEATS = 6

function heartbeatMsOf(config: Readonly<Partial<ConfigFields>>): DurationMs {
  return Math.max(5, config.heartbeat_seconds ?? DEFAULT_CONFIG.heartbeat_seconds) * 1000
}
