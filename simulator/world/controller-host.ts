/**
 * The controllers of a world, one after the other or two at once, over one store that survives them all; and
 * the supervisors that restart them.
 */
import { createMemoryLease } from '../../controller/adapters/memory-leadership.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import { sumOf, ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import type { Controller, Stopwatch } from '../../controller/controller.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import { ControllerProcess } from './controller-process.ts'
import type { ControllerPlace, ControllerSettings, ControllerWatch } from './controller-process.ts'
import { RESTART_AFTER_MS } from '../fleet/node-host.ts'
import type { Fault, LeaseLoss } from '../scenario/fault.ts'
import { StoreLink } from './store-link.ts'

export interface ControllerHostOptions extends ControllerSettings {
  /** Returns the random stream of the process with this number, from 1. */
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
interface Place extends ControllerPlace {
  process: ControllerProcess
  /** Number of faults that keep the controller from starting. */
  absences: number
  /** The supervisor does not restart it. */
  isClosed: boolean
}

export class ControllerHost {
  readonly #o: ControllerHostOptions
  readonly #first: Place
  /** Waits while another controller leads. Null: one controller at a time. */
  readonly #standby: Place | null
  #second: Place | null = null
  #placesSoFar = 0
  /** Where the latest process runs, or did. */
  #latestPlace: Place
  /** By fault: the places that it keeps away, or whose lease it takes. */
  readonly #struck = new Map<object, readonly Place[]>()
  #asked = 0
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
    this.#first = this.#newPlace()
    this.#latestPlace = this.#first
    this.#latest = this.#first.process
    this.#standby = options.succession === null ? null : this.#newPlace()
  }

  /** The controller that began last. */
  get controller(): Controller {
    return this.#latest.controller
  }

  get isUp(): boolean {
    return this.#isCounted && !this.#latest.isPaused
  }

  /**
   * Returns the commands of the controller that a client calls; null: no controller runs. A client does not
   * know which of several controllers leads, and tries them one after the other.
   */
  commandsToAsk(): Controller['commands'] | null {
    if (this.#standby === null) return this.isUp ? this.controller.commands : null
    const begun = this.#living().filter(({ isBegun, isPaused }) => isBegun && !isPaused)
    this.#asked += 1
    return begun[this.#asked % begun.length]?.controller.commands ?? null
  }

  /** Measures the decisions of all controllers, including later ones. */
  timeDecisions(stopwatch: Stopwatch | null): void {
    this.#stopwatch = stopwatch
    for (const { process } of this.#places()) process.timeDecisions(stopwatch)
  }

  /** When the controller that began last read the store. */
  get startedAt(): Instant {
    return this.#latest.startedAt
  }

  get hasStandby(): boolean {
    return this.#standby !== null
  }

  /** Two controllers live: each hears of a node on its own. */
  get isContested(): boolean {
    return this.#living().filter(({ hasOpened }) => hasOpened).length > 1
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

  async start(): Promise<void> {
    await this.#first.process.start()
    void this.#standby?.process.start()
  }

  /** Calls with every controller that has read what is durable. */
  onBegun(listener: () => void): void {
    this.#onBegun.push(listener)
  }

  /** Kills all controllers. Returns whether one was running. */
  crashAll(): boolean {
    return endEach(this.#places(), (process) => process.die())
  }

  /** Kills the controller; a standby continues. Returns whether one was running. */
  crash(): boolean {
    return endEach(this.#leading(), (process) => process.die())
  }

  /** Stops the controller; a standby continues. Returns whether one was running. */
  stop(): boolean {
    return endEach(this.#leading(), (process) => process.stop())
  }

  /** Keeps the supervisors from starting controllers, until `comeBack` is called with the same cause. */
  stayAway(cause: object, which: 'all' | 'leader' = 'leader'): void {
    const places = which === 'all' ? this.#places() : this.#leading()
    this.#struck.set(cause, places)
    for (const place of places) place.absences += 1
  }

  comeBack(cause: Pick<Fault, 'forMs'>): void {
    const struck = this.#take(cause)
    for (const place of this.#places()) {
      // One controller at a time: a second one shares the absences of the first.
      if (this.#standby !== null && !struck.includes(place)) continue
      place.absences = Math.max(0, place.absences - 1)
      // A restart takes longer than the standby needs to lead.
      if (this.#standby === null || cause.forMs !== 0) this.#revive(place)
    }
  }

  /** Takes the lease of the leader. Returns whether one led. */
  loseLease(cause: object, how: LeaseLoss): boolean {
    const place = this.#latestPlace
    if (this.#standby === null || !this.isUp || place.process !== this.#latest) return false
    this.#struck.set(cause, [place])
    if (how === 'paused') place.process.pause()
    else if (how === 'unanswered') place.link.mute()
    else this.#cut(place)
    return true
  }

  /**
   * No controller reaches the store. @param areConnectionsLost otherwise the leader waits for its answers
   */
  loseStore(cause: object, areConnectionsLost: boolean): void {
    const places = this.#places()
    this.#struck.set(cause, places)
    for (const place of places) this.#cut(place)
    if (!areConnectionsLost) return
    for (const { process } of places) if (process.hasOpened) process.die()
  }

  /** @param how as with the same cause at `loseLease`; `cut` after `loseStore` */
  regainLease(cause: object, how: LeaseLoss): void {
    for (const place of this.#take(cause)) {
      if (how === 'paused') place.process.resume()
      else if (how === 'unanswered') place.link.unmute()
      else this.#mend(place)
    }
  }

  /** The store went back to this epoch, and the lease with it. No controller runs. */
  setBack(epoch: number): void {
    const { store, succession } = this.#o
    store.disk.owner = null
    if (succession !== null) Object.assign(succession.lease, { ...createMemoryLease(), epoch })
  }

  /** Starts a second controller on the same store. @param isForGood the first is not restarted */
  beginSecond(isForGood: boolean): void {
    if (this.#second !== null) return
    this.#second = this.#newPlace(this.#first.absences)
    this.#first.isClosed = isForGood
    void this.#second.process.start()
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
    return this.#isCounted
      ? sumOf([this.#countersBefore, this.controller.views.clusterCounters()])
      : this.#countersBefore
  }

  swapTotals(): SwapTotals {
    return this.#isCounted ? sumOfSwaps(this.#swapsBefore, swapTotalsOf(this.controller)) : this.#swapsBefore
  }

  get #isCounted(): boolean {
    return this.#latest.isBegun && !this.#latest.isOver
  }

  #newPlace(absences = 0): Place {
    this.#placesSoFar += 1
    const at = { name: `head-${this.#placesSoFar}`, link: new StoreLink() }
    return { ...at, process: this.#newProcess(at), absences, isClosed: false }
  }

  #newProcess(at: ControllerPlace): ControllerProcess {
    this.#starts += 1
    const { randomOf, watch, ...settings } = this.#o
    const process = new ControllerProcess({
      ...settings,
      place: at,
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
        this.#latestPlace = this.#places().find((each) => each.process === process) ?? this.#latestPlace
        for (const listener of this.#onBegun) listener()
      },
      onOver: (process) => {
        if (process === this.#latest && process.isBegun) this.#keepCounts(process)
        const place = this.#places().find((each) => each.process === process)
        if (place !== undefined) this.#reviveLater(place)
      },
    })
    process.timeDecisions(this.#stopwatch)
    return process
  }

  #keepCounts({ controller }: ControllerProcess): void {
    this.#countersBefore = sumOf([this.#countersBefore, controller.views.clusterCounters()])
    this.#swapsBefore = sumOfSwaps(this.#swapsBefore, swapTotalsOf(controller))
  }

  #cut({ link, process }: Place): void {
    link.cut()
    process.disconnect()
  }

  #mend(place: Place): void {
    place.link.mend()
    if (!place.link.isCut) place.process.reconnect()
  }

  #take(cause: object): readonly Place[] {
    const struck = this.#struck.get(cause) ?? []
    this.#struck.delete(cause)
    return struck
  }

  /** Where the leader runs, or did last. One controller at a time: all places. */
  #leading(): readonly Place[] {
    return this.#standby === null ? this.#places() : [this.#latestPlace]
  }

  #living(): readonly ControllerProcess[] {
    return this.#places()
      .map(({ process }) => process)
      .filter(({ isOver }) => !isOver)
  }

  #reviveLater(place: Place): void {
    const { clock } = this.#o
    clock.at(clock.now() + RESTART_AFTER_MS, () => this.#revive(place), RANK_ARRIVAL)
  }

  #revive(place: Place): void {
    if (!place.process.isOver || place.isClosed || place.absences > 0) return
    place.process = this.#newProcess(place)
    void place.process.start()
  }

  #places(): readonly Place[] {
    return [this.#first, this.#standby, this.#second].filter((place) => place !== null)
  }
}

/** Returns whether one was running. */
function endEach(places: readonly Place[], end: (process: ControllerProcess) => void): boolean {
  const living = places.filter(({ process }) => !process.isOver)
  for (const { process } of living) end(process)
  return living.length > 0
}

function swapTotalsOf({ views }: Controller): SwapTotals {
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
