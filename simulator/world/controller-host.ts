/**
 * The controllers of a world, one after the other or two at once, over one store that survives them all; and
 * the supervisors that restart them.
 */
import type { Counters } from '../../controller/metrics/counters.ts'
import { sumOf, ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import type { Controller, Stopwatch } from '../../controller/controller.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import { ControllerProcess } from './controller-process.ts'
import type { ControllerSettings, ControllerWatch } from './controller-process.ts'
import { RESTART_AFTER_MS } from '../fleet/node-host.ts'

export interface ControllerHostOptions extends ControllerSettings {
  /** Of the process with that number, from 1. */
  readonly randomOf: (start: number) => Random
  /** Called at each start of a controller. */
  readonly watch?: () => ControllerWatch
}

/** Counters that a controller has in memory only. */
export interface SwapTotals {
  readonly swapOuts: number
  readonly swappedOutMib: Mib
  readonly swappedInMib: Mib
}

/** A controller with its supervisor. */
interface Place {
  process: ControllerProcess
  /** Number of faults that keep the controller from starting. */
  absences: number
  /** The supervisor does not restart it. */
  isClosed: boolean
}

export class ControllerHost {
  readonly #o: ControllerHostOptions
  readonly #first: Place
  #second: Place | null = null
  #starts = 0
  #begun = 0
  readonly #onBegun: (() => void)[] = []
  /** The process that began last, dead or alive. */
  #latest: ControllerProcess
  #countersBefore: Counters = ZERO_COUNTERS
  #swapsBefore: SwapTotals = { swapOuts: 0, swappedOutMib: 0, swappedInMib: 0 }
  #stopwatch: Stopwatch | null = null

  constructor(options: ControllerHostOptions) {
    this.#o = options
    const process = this.#newProcess()
    this.#first = { process, absences: 0, isClosed: false }
    this.#latest = process
  }

  /** The controller that began last. */
  get controller(): Controller {
    return this.#latest.controller
  }

  get isUp(): boolean {
    return this.#latest.isBegun && !this.#latest.isOver
  }

  /** Measures the decisions of all controllers, including later ones. */
  timeDecisions(stopwatch: Stopwatch | null): void {
    this.#stopwatch = stopwatch
    for (const { process } of this.#places()) process.controller.timeDecisions(stopwatch)
  }

  /** When the controller that began last read the store. */
  get startedAt(): Instant {
    return this.#latest.startedAt
  }

  /** Two controllers live: each hears of a node on its own. */
  get isContested(): boolean {
    return this.#places().filter(({ process }) => !process.isOver).length > 1
  }

  /** Number of controllers that have begun so far. */
  get begun(): number {
    return this.#begun
  }

  /** Every controller that should run runs. */
  get isSettled(): boolean {
    return (
      this.isUp &&
      (this.#second === null || this.#first.isClosed) &&
      this.#places().every(({ absences }) => absences === 0)
    )
  }

  start(): Promise<void> {
    return this.#first.process.start()
  }

  /** Calls with every controller that has read what is durable. */
  onBegun(listener: () => void): void {
    this.#onBegun.push(listener)
  }

  /** Kills all controllers. Returns whether one was running. */
  crash(): boolean {
    return this.#endAll((process) => process.die())
  }

  /** Stops all controllers. Returns whether one was running. */
  stop(): boolean {
    return this.#endAll((process) => process.stop())
  }

  /** Keeps the supervisors from starting controllers, until `comeBack` was called as often as this. */
  stayAway(): void {
    for (const place of this.#places()) place.absences += 1
  }

  comeBack(): void {
    for (const place of this.#places()) {
      place.absences = Math.max(0, place.absences - 1)
      this.#revive(place)
    }
  }

  /** Starts a second controller on the same store. @param isForGood the first is not restarted */
  beginSecond(isForGood: boolean): void {
    if (this.#second !== null) return
    const process = this.#newProcess()
    this.#second = { process, absences: this.#first.absences, isClosed: false }
    this.#first.isClosed = isForGood
    void process.start()
  }

  /** Ends the second controller. The first continues, or is restarted. */
  endSecond(): void {
    const second = this.#second
    if (second === null) return
    second.isClosed = true
    this.#second = null
    second.process.die()
    this.#revive(this.#first)
  }

  /** Removes the crashes that wait for a command. */
  disarm(): void {
    for (const { process } of this.#places()) process.disarm()
  }

  /** Sums of all controllers so far. */
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
    const { randomOf, watch, ...settings } = this.#o
    const process = new ControllerProcess({
      ...settings,
      random: randomOf(this.#starts),
      watch: watch?.() ?? null,
      onBegun: (process) => {
        // Another process opened the store while this one wrote its epoch. This one learns it at its first
        // commit.
        if (settings.store.disk.owner !== process) return
        // The process before may not know yet that it has lost the store. It no longer counts.
        if (this.#latest !== process && !this.#latest.isOver) this.#keepCounts(this.#latest)
        this.#begun += 1
        this.#latest = process
        for (const listener of this.#onBegun) listener()
      },
      onOver: (process) => {
        if (process === this.#latest && process.isBegun) this.#keepCounts(process)
        const place = this.#places().find((each) => each.process === process)
        if (place !== undefined) this.#reviveLater(place)
      },
    })
    process.controller.timeDecisions(this.#stopwatch)
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
    void place.process.start()
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
