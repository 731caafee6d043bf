/** A controller's process. It may die at any moment; the next one starts with what is durable. */
import { createMemoryLeadership } from '../../controller/adapters/memory-leadership.ts'
import type { MemoryLeadership, MemoryLease } from '../../controller/adapters/memory-leadership.ts'
import { createController } from '../../controller/controller.ts'
import type { Controller, ControllerOptions, Stopwatch } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { Term } from '../../controller/ports/leadership.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import { inTerm } from '../../controller/ports/store.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { Pause } from '../kernel/pause.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { deferredBus } from '../network/deferred-bus.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { Endpoint, SimBus } from '../network/sim-bus.ts'
import type { AmongOthers, Committer, CrashPoint, StoreOptions } from './process-store.ts'
import { storeOf } from './process-store.ts'
import { ProcessClock } from '../kernel/process-clock.ts'
import { pausableBus } from '../network/pausable-bus.ts'
import { commitsOver } from './store-link.ts'
import type { StoreLink } from './store-link.ts'

/** Observes swap-out decisions, and may replace a victim. */
export type VictimOverride = NonNullable<ControllerOptions['victimOverride']>
/** Sees all inputs of a controller, for example to record them. */
export type ControllerWatch = NonNullable<ControllerOptions['inputTap']>

/** Settings that all controllers of a world share. */
export interface ControllerSettings {
  readonly clock: SimClock
  readonly bus: SimBus
  /** In place of the endpoint of a controller. */
  readonly controllerBus?: (endpoint: Bus) => Bus
  readonly store: StoreOptions
  readonly initialConfig: Partial<ConfigFields>
  readonly ownerLimits: OwnerLimits
  readonly victimOverride: VictimOverride | null
  /** Heartbeats that change nothing are not sent. */
  readonly areHeartbeatsElided: boolean
  /** What the controllers share if one leads and another waits; null: one controller at a time. */
  readonly succession: Succession | null
}

export interface Succession {
  readonly lease: MemoryLease
  readonly leaseMs: DurationMs
}

/** Where a controller among several runs. */
export interface ControllerPlace {
  readonly name: string
  readonly link: StoreLink
}

export interface ControllerProcessOptions extends ControllerSettings {
  readonly place: ControllerPlace
  readonly random: Random
  readonly watch: ControllerWatch | null
  /** The process has read the store, and listens. */
  readonly onBegun: (process: ControllerProcess) => void
  /** The process is dead. Its counters can be read for the last time. */
  readonly onOver: (process: ControllerProcess) => void
}

export class ControllerProcess implements Committer {
  readonly #o: ControllerProcessOptions
  readonly #endpoint: Endpoint
  /** Null: the process cannot die. */
  readonly #clock: ProcessClock | null
  readonly #pause = new Pause()
  /** The thread that beats continues last: the process may commit before it learns that it was replaced. */
  readonly #beating: ProcessClock
  readonly #beatingPause = new Pause()
  /** Null: there are no other controllers. */
  readonly #leadership: MemoryLeadership | null
  #controller: Controller | null = null
  #stopwatch: Stopwatch | null = null
  #term: Term | null = null
  /** The next command ends the process. */
  #trap: CrashPoint | null = null
  /** When it reads the store. */
  startedAt: Instant = 0
  /** It reads the store, or has: it waits for no other controller. */
  hasOpened = false
  isBegun = false
  isOver = false

  constructor(options: ControllerProcessOptions) {
    this.#o = options
    const { store, succession } = options
    this.#clock = store.isReliable
      ? null
      : new ProcessClock(options.clock, succession === null ? null : this.#pause)
    this.#endpoint = options.bus.endpoint(null, (_subject, message) =>
      this.#mayLeave('valid_until_mono' in message.body),
    )
    this.#beating = new ProcessClock(options.clock, this.#beatingPause)
    this.#leadership = succession === null ? null : this.#candidate(succession)
  }

  /** A standby creates it when it leads. */
  get controller(): Controller {
    return (this.#controller ??= this.#create())
  }

  get isPaused(): boolean {
    return this.#pause.isOn
  }

  timeDecisions(stopwatch: Stopwatch | null): void {
    this.#stopwatch = stopwatch
    this.#controller?.timeDecisions(stopwatch)
  }

  /**
   * Resolves when the process has begun, or died. A standby waits for its term. Rejects in a reliable world,
   * where it cannot die.
   */
  start(): Promise<void> {
    if (this.#leadership === null) return this.#open()
    const leadership = this.#leadership
    this.#o.store.onPromise()
    return leadership.campaign().then((term) => {
      this.#term = term
      void leadership.lost.then(() => this.die())
      return this.#open()
    })
  }

  /** Ends the process as kill -9 does, with unfinished work. */
  die(): void {
    if (this.isOver) return
    this.isOver = true
    // The store notices the end of the connection, if it is not cut.
    if (this.#leadership !== null) this.#o.place.link.send(() => void this.#leadership?.close())
    this.#o.onOver(this)
    this.#endpoint.kill()
    if (this.#clock !== null) this.#clock.isDead = true
    this.#beating.isDead = true
  }

  /** Ends the process as SIGTERM does. */
  stop(): void {
    if (this.isOver) return
    if (this.isBegun) void this.controller.stop()
    this.die()
  }

  /** Stops it, as SIGSTOP does. */
  pause(): void {
    this.#pause.begin()
    this.#beatingPause.begin()
  }

  resume(): void {
    if (this.isOver) return
    this.#pause.end()
    this.#beatingPause.end()
  }

  /** The link of its place is cut. */
  disconnect(): void {
    this.#leadership?.freeze()
  }

  /** Requests arrive again. */
  reconnect(): void {
    if (this.isOver) return
    this.#o.store.onPromise()
    this.#leadership?.thaw()
  }

  dieAtNextCommand(death: CrashPoint): void {
    this.#trap = death
  }

  disarm(): void {
    this.#trap = null
  }

  #mayLeave(isCommand: boolean): boolean {
    const trap = this.#trap
    if (trap === null || !isCommand) return true
    this.#trap = null
    this.die()
    trap.onCrash()
    // No process receives the answer of a command that was sent.
    return trap.point === 'after_effects'
  }

  #open(): Promise<void> {
    const { clock, store, onBegun } = this.#o
    this.startedAt = clock.now()
    this.hasOpened = true
    store.onPromise()
    return this.controller.start().then(
      () => {
        if (this.isOver) return
        this.isBegun = true
        onBegun(this)
      },
      (fault: unknown) => {
        if (store.isReliable) throw fault
        this.die()
      },
    )
  }

  #create(): Controller {
    const { random, watch, store, initialConfig, ownerLimits, victimOverride, areHeartbeatsElided } = this.#o
    const { succession } = this.#o
    const clock = this.#clock ?? this.#o.clock
    const endpoint = succession === null ? this.#endpoint : pausableBus(this.#endpoint, this.#pause)
    const bus = this.#o.controllerBus?.(endpoint) ?? endpoint
    const controller = createController(
      // A recording takes inputs one at a time.
      {
        ...{ clock, random, bus: watch === null ? bus : deferredBus(bus, clock) },
        store: storeOf(this, store, succession === null ? null : this.#amongOthers(succession)),
      },
      {
        ...{ initialConfig, ownerLimits, victimOverride, areHeartbeatsElided },
        ...(watch === null ? {} : { inputTap: watch }),
        ...(succession === null ? {} : { leaseMs: succession.leaseMs }),
        ...(store.isReliable ? { onEvents: store.onDurable } : { onFault: () => this.die() }),
      },
    )
    controller.timeDecisions(this.#stopwatch)
    return controller
  }

  #candidate({ lease, leaseMs }: Succession): MemoryLeadership {
    const { store, place } = this.#o
    const inner = this.#beating
    const clock: Clock = {
      now: () => inner.now(),
      soon: (fn, rank) => inner.soon(fn, rank),
      // A term that begins or ends keeps a promise.
      at: (instant, fn, rank) =>
        inner.at(
          instant,
          () => {
            const before = leadership.epoch
            fn()
            if (leadership.epoch !== before) store.onPromise()
          },
          rank,
        ),
    }
    const leadership = createMemoryLeadership(lease, { name: place.name, leaseMs, clock })
    if (place.link.isCut) leadership.freeze()
    return leadership
  }

  #amongOthers({ leaseMs }: Succession): AmongOthers {
    const { clock, store, place } = this.#o
    const whenRunning = (act: () => void): void => {
      if (!this.isOver) this.#pause.run(act)
    }
    return {
      termOf: (stored) => (this.#term === null ? stored : inTerm(stored, this.#term, place.name)),
      commits: (commit) =>
        commitsOver(commit, {
          ...{ link: place.link, clock, leaseMs, whenRunning },
          onPromise: store.onPromise,
        }),
    }
  }
}
