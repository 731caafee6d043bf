/**
 * A controller's process that may die at any moment, and the next one that begins with what it had made
 * durable.
 */
import { createController } from '../../controller/controller.ts'
import type { Controller, ControllerOptions } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Instant } from '../../protocol/units.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { deferredBus } from '../network/deferred-bus.ts'
import type { Endpoint, FaultyBus } from '../network/faulty-bus.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import type { Committer, CrashPoint, StoreOptions } from './faulty-store.ts'
import { storeOf } from './faulty-store.ts'
import { ProcessClock } from '../kernel/process-clock.ts'

/** Sees everything that enters a controller: a recording, say. */
/** Observes swap-out decisions, and may replace a victim. */
export type VictimOverride = NonNullable<ControllerOptions['victimOverride']>
export type ControllerWatch = NonNullable<ControllerOptions['inputTap']>

export interface ControllerProcessOptions {
  readonly clock: SimClock
  readonly bus: FaultyBus
  readonly random: Random
  readonly store: StoreOptions
  readonly initialConfig: Partial<ConfigFields>
  readonly ownerLimits: OwnerLimits
  readonly victimOverride: VictimOverride | null
  readonly tally: FaultTally
  /** Left out: nobody watches. */
  readonly watch?: ControllerWatch
  /** It has read what is durable, and listens. */
  readonly onBegun: (process: ControllerProcess) => void
  /** It is dead; what it had counted can be read for the last time. */
  readonly onOver: (process: ControllerProcess, why: string) => void
}

export class ControllerProcess implements Committer {
  readonly controller: Controller
  readonly #o: ControllerProcessOptions
  readonly #endpoint: Endpoint
  readonly #clock: ProcessClock
  /** It dies at its next command. */
  #trap: CrashPoint | null = null
  /** It reads the store in this instant. */
  startedAt: Instant = 0
  isBegun = false
  isOver = false

  constructor(options: ControllerProcessOptions) {
    this.#o = options
    this.#clock = new ProcessClock(options.clock)
    this.#endpoint = options.bus.endpoint(null, (_subject, message) =>
      this.#mayLeave('valid_until_mono' in message.body),
    )
    const { clock, random } = { clock: this.#clock, random: options.random }
    const { watch: inputTap } = options
    this.controller = createController(
      {
        ...{ clock, random, store: storeOf(this, options.store) },
        // Inputs that are noted come one after the other.
        bus: inputTap === undefined ? this.#endpoint : deferredBus(this.#endpoint, clock),
      },
      {
        ...(inputTap === undefined ? {} : { inputTap }),
        initialConfig: options.initialConfig,
        ownerLimits: options.ownerLimits,
        victimOverride: options.victimOverride,
        onFault: (fault) => this.die(fault instanceof Error ? fault.message : String(fault)),
      },
    )
  }

  /** Begins once its promises have run. */
  start(): void {
    this.startedAt = this.#o.clock.now()
    this.#o.store.onPromise()
    this.controller.start().then(
      () => {
        if (this.isOver) return
        this.isBegun = true
        this.#o.onBegun(this)
      },
      (fault: unknown) => this.die(fault instanceof Error ? fault.message : String(fault)),
    )
  }

  /** As with kill -9: nothing of what is under way is finished. */
  die(why = 'killed'): void {
    if (this.isOver) return
    this.isOver = true
    this.#o.onOver(this, why)
    this.#endpoint.kill()
    this.#clock.isDead = true
  }

  /** As with SIGTERM: it listens no more, and ends. */
  stop(): void {
    if (this.isOver) return
    if (this.isBegun) void this.controller.stop()
    this.die('stopped')
  }

  dieAtNextCommand(death: CrashPoint): void {
    this.#trap = death
  }

  /** It does not die there after all. */
  disarm(): void {
    this.#trap = null
  }

  #mayLeave(isCommand: boolean): boolean {
    const trap = this.#trap
    if (trap === null || !isCommand) return true
    this.#trap = null
    this.die()
    trap.onCrash()
    // The command leaves, or not; whatever comes back finds nobody.
    return trap.point === 'after_effects'
  }
}
