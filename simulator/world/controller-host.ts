/**
 * The controllers of a world, one after the other or two at once, over one store that survives them all; and
 * the supervisors that start them again.
 */
import type { Counters } from '../../controller/metrics/counters.ts'
import { sumOf, ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import type { Controller } from '../../controller/controller.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { OwnerLimits } from '../../controller/model/owner-limits.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { ControllerProcess } from './controller-process.ts'
import type { ControllerWatch, VictimOverride } from './controller-process.ts'
import type { FaultyBus } from '../network/faulty-bus.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import type { StoreOptions } from './faulty-store.ts'
import { RESTART_AFTER_MS } from '../fleet/node-host.ts'

export interface ControllerHostOptions {
  readonly clock: SimClock
  readonly bus: FaultyBus
  /** Of the process with that number, from 1. */
  readonly randomOf: (start: number) => Random
  readonly store: StoreOptions
  readonly initialConfig: Partial<ConfigFields>
  readonly ownerLimits: OwnerLimits
  readonly victimOverride: VictimOverride | null
  readonly tally: FaultTally
  /** Sees everything that enters a controller; asked for at each start. */
  readonly watch?: () => ControllerWatch
  /** A controller has read what is durable. */
  readonly onBegun: () => void
}

/** Growing numbers that a controller has in memory alone. */
export interface SwapTotals {
  readonly swapOuts: number
  readonly swappedOutMib: Mib
  readonly swappedInMib: Mib
}

/** What is told when a controller begins and ends to decide. */
export type DecisionWatch = Controller['engine']['stopwatch']

/** A place for a controller, with its supervisor. */
interface Place {
  process: ControllerProcess
  /** Faults that keep it from being started. */
  absences: number
  /** Nobody starts it again. */
  isClosed: boolean
}

export class ControllerHost {
  readonly #o: ControllerHostOptions
  readonly #first: Place
  #second: Place | null = null
  #starts = 0
  #begun = 0
  /** The one that began last, whether or not it is over. */
  #latest: ControllerProcess
  #countersBefore: Counters = ZERO_COUNTERS
  #swapsBefore: SwapTotals = { swapOuts: 0, swappedOutMib: 0, swappedInMib: 0 }
  #stopwatch: DecisionWatch = null

  constructor(options: ControllerHostOptions) {
    this.#o = options
    const process = this.#newProcess()
    this.#first = { process, absences: 0, isClosed: false }
    this.#latest = process
  }

  get controller(): Controller {
    return this.#latest.controller
  }

  get isUp(): boolean {
    return this.#latest.isBegun && !this.#latest.isOver
  }

  /** Measures the decisions of all controllers from here on, whoever is started later among them. */
  timeDecisions(stopwatch: DecisionWatch): void {
    this.#stopwatch = stopwatch
    for (const { process } of this.#places()) process.controller.engine.stopwatch = stopwatch
  }

  /** Of the one that began last. */
  get startedAt(): Instant {
    return this.#latest.startedAt
  }

  /** How many have begun so far. */
  get begun(): number {
    return this.#begun
  }

  /** None is to be started again, and none is missing. */
  get isSettled(): boolean {
    return (
      this.isUp &&
      (this.#second === null || this.#first.isClosed) &&
      this.#places().every(({ absences }) => absences === 0)
    )
  }

  start(): void {
    this.#first.process.start()
  }

  /** Kills whatever controllers there are. Says whether there was one. */
  crash(): boolean {
    return this.#endAll((process) => process.die())
  }

  /** Stops whatever controllers there are, in good order. Says whether there was one. */
  stop(): boolean {
    return this.#endAll((process) => process.stop())
  }

  /** From here on its supervisor does not start it, until as many `comeBack` as there were `stayAway`. */
  stayAway(): void {
    for (const place of this.#places()) place.absences += 1
  }

  comeBack(): void {
    for (const place of this.#places()) {
      place.absences = Math.max(0, place.absences - 1)
      this.#revive(place)
    }
  }

  /**
   * A second one begins with the same store. @param isForGood the first is not started again once it finds
   * out
   */
  beginSecond(isForGood: boolean): void {
    if (this.#second !== null) return
    const process = this.#newProcess()
    this.#second = { process, absences: this.#first.absences, isClosed: false }
    this.#first.isClosed = isForGood
    process.start()
  }

  /** The second one is taken away again; the first goes on, or is started again. */
  endSecond(): void {
    const second = this.#second
    if (second === null) return
    second.isClosed = true
    this.#second = null
    second.process.die('taken away')
    this.#revive(this.#first)
  }

  /** Nobody lies in wait for a commit any more. */
  disarm(): void {
    for (const { process } of this.#places()) process.disarm()
  }

  /** Of all controllers so far; while none is up nothing is counted. */
  counters(): Counters {
    return this.isUp
      ? sumOf([this.#countersBefore, this.controller.views.clusterCounters()])
      : this.#countersBefore
  }

  swapTotals(): SwapTotals {
    return this.isUp ? sumOfSwaps(this.#swapsBefore, swapTotalsOf(this.controller)) : this.#swapsBefore
  }

  #newProcess(): ControllerProcess {
    this.#starts += 1
    const { clock, bus, randomOf, store, initialConfig, ownerLimits, victimOverride, tally, watch } = this.#o
    const process = new ControllerProcess({
      clock,
      bus,
      random: randomOf(this.#starts),
      store,
      initialConfig,
      ownerLimits,
      victimOverride,
      tally,
      ...(watch === undefined ? {} : { watch: watch() }),
      onBegun: (process) => {
        // Another has taken the store while it wrote its epoch: it is not the later one, and finds out at its
        // first commit.
        if (store.disk.owner !== process) return
        // The one before it may not know yet that it is none any more: it counts no longer.
        if (this.#latest !== process && !this.#latest.isOver) this.#keepCounts(this.#latest)
        this.#begun += 1
        this.#latest = process
        this.#o.onBegun()
      },
      onOver: (process) => {
        if (process === this.#latest && process.isBegun) this.#keepCounts(process)
        const place = this.#places().find((each) => each.process === process)
        if (place !== undefined) this.#reviveLater(place)
      },
    })
    process.controller.engine.stopwatch = this.#stopwatch
    return process
  }

  #keepCounts({ controller }: ControllerProcess): void {
    this.#countersBefore = sumOf([this.#countersBefore, controller.views.clusterCounters()])
    this.#swapsBefore = sumOfSwaps(this.#swapsBefore, swapTotalsOf(controller))
  }

  #endAll(end: (process: ControllerProcess) => void): boolean {
    const living = this.#places().filter(({ process }) => !process.isOver)
    for (const { process } of living) end(process)
    return living.length > 0
  }

  #reviveLater(place: Place): void {
    const { clock } = this.#o
    clock.at(clock.now() + RESTART_AFTER_MS, () => this.#revive(place), RANK_ARRIVAL)
  }

  #revive(place: Place): void {
    if (!place.process.isOver || place.isClosed || place.absences > 0) return
    place.process = this.#newProcess()
    place.process.start()
  }

  #places(): readonly Place[] {
    return this.#second === null ? [this.#first] : [this.#first, this.#second]
  }
}

export function swapTotalsOf({ views }: Controller): SwapTotals {
  const { swapOuts, swappedOutMibTotal, swappedInMibTotal } = views.totals()
  return { swapOuts, swappedOutMib: swappedOutMibTotal, swappedInMib: swappedInMibTotal }
}

function sumOfSwaps(a: SwapTotals, b: SwapTotals): SwapTotals {
  return {
    swapOuts: a.swapOuts + b.swapOuts,
    swappedOutMib: a.swappedOutMib + b.swappedOutMib,
    swappedInMib: a.swappedInMib + b.swappedInMib,
  }
}
