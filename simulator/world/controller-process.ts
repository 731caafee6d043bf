/** A controller's process. It may die at any moment; the next one starts with what is durable. */
import { createController } from '../../controller/controller.ts'
import type { Controller, ControllerOptions } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Instant } from '../../protocol/units.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { deferredBus } from '../network/deferred-bus.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { Endpoint, SimBus } from '../network/sim-bus.ts'
import type { Committer, CrashPoint, StoreOptions } from './process-store.ts'
import { storeOf } from './process-store.ts'
import { ProcessClock } from '../kernel/process-clock.ts'

/** Observes swap-out decisions, and may replace a victim. */
export type VictimOverride = NonNullable<ControllerOptions['victimOverride']>
/** Sees all inputs of a controller, for example to record them. */
export type ControllerWatch = NonNullable<ControllerOptions['inputTap']>

/** What all controllers of a world have in common. */
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
}

export interface ControllerProcessOptions extends ControllerSettings {
  readonly random: Random
  readonly watch: ControllerWatch | null
  /** The process has read the store, and listens. */
  readonly onBegun: (process: ControllerProcess) => void
  /** The process is dead. Its counters can be read for the last time. */
  readonly onOver: (process: ControllerProcess) => void
}

export class ControllerProcess implements Committer {
  readonly controller: Controller
  readonly #o: ControllerProcessOptions
  readonly #endpoint: Endpoint
  /** Null: the process cannot die. */
  readonly #clock: ProcessClock | null
  /** The next command ends the process. */
  #trap: CrashPoint | null = null
  /** When it reads the store. */
  startedAt: Instant = 0
  isBegun = false
  isOver = false

  constructor(options: ControllerProcessOptions) {
    this.#o = options
    this.#clock = options.store.isReliable ? null : new ProcessClock(options.clock)
    this.#endpoint = options.bus.endpoint(null, (_subject, message) =>
      this.#mayLeave('valid_until_mono' in message.body),
    )
    const { random, watch, store, initialConfig, ownerLimits, victimOverride, areHeartbeatsElided } = options
    const clock = this.#clock ?? options.clock
    const bus = options.controllerBus?.(this.#endpoint) ?? this.#endpoint
    this.controller = createController(
      // A recording takes inputs one at a time.
      { clock, random, bus: watch === null ? bus : deferredBus(bus, clock), store: storeOf(this, store) },
      {
        ...{ initialConfig, ownerLimits, victimOverride, areHeartbeatsElided },
        ...(watch === null ? {} : { inputTap: watch }),
        ...(store.isReliable ? { onEvents: store.onDurable } : { onFault: () => this.die() }),
      },
    )
  }

  /** Resolves when the process has begun, or died. Rejects in a reliable world, where it cannot die. */
  start(): Promise<void> {
    const { clock, store, onBegun } = this.#o
    this.startedAt = clock.now()
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

  /** Ends the process as kill -9 does, with unfinished work. */
  die(): void {
    if (this.isOver) return
    this.isOver = true
    this.#o.onOver(this)
    this.#endpoint.kill()
    if (this.#clock !== null) this.#clock.isDead = true
  }

  /** Ends the process as SIGTERM does. */
  stop(): void {
    if (this.isOver) return
    if (this.isBegun) void this.controller.stop()
    this.die()
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
}
