/**
 * One order of a pool: its GPUs (one GPU asked for) or its nodes (several) in the order of preference, with
 * what they admit to each kind of request. One order serves all kinds; what changed is taken in when somebody
 * asks.
 */
import type { Mib } from '../../../protocol/units.ts'
import { empty } from '../../domain/list-edit.ts'
import { OrderedTable } from '../../domain/ordered-table.ts'
import { NOTHING } from '../../scheduler/feasible.ts'
import { byGpuId, byNodeId } from '../../scheduler/score.ts'
import type { HeldLane } from './hold-index.ts'
import { HoldIndex } from './hold-index.ts'
import type { SeatTable } from './seat-table.ts'
import type { NodeSeat, Seat, Unit } from './seats.ts'

export class Facet {
  readonly #table: SeatTable
  readonly #gpuCount: number
  readonly #order: OrderedTable
  /** By the numbers of units: what is offered together, one GPU or a node. */
  readonly #units: (Unit | undefined)[] = []
  readonly #isUnseen: boolean[] = []
  readonly #unseen: Seat[] = []
  readonly #wasHeld: boolean[] = []
  readonly #held: HoldIndex
  /** Of the unit that is being taken in, by lane. */
  readonly #values: Float64Array
  /** What its best GPUs admit, the best first. */
  readonly #best: Mib[] = []

  constructor(table: SeatTable, gpuCount: number) {
    this.#table = table
    this.#gpuCount = gpuCount
    this.#values = new Float64Array(table.lanes)
    this.#held = new HoldIndex(gpuCount, table)
    this.#order = new OrderedTable(table.lanes, (a, b) => {
      const one = this.#seatOf(a)
      const other = this.#seatOf(b)
      return gpuCount === 1 ? byGpuId(one.gpu, other.gpu) : byNodeId(one.gpu.node, other.gpu.node)
    })
  }

  /** The GPU's figures or holds changed. */
  mark(seat: Seat): void {
    const { number } = this.#unitOf(seat)
    if (this.#isUnseen[number] === true) return
    this.#isUnseen[number] = true
    this.#unseen.push(seat)
  }

  catchUp(): void {
    if (this.#unseen.length === 0) return
    for (const seat of this.#unseen) {
      const unit = this.#unitOf(seat)
      this.#isUnseen[unit.number] = false
      if (seat.node.isMember) this.#takeIn(unit)
    }
    empty(this.#unseen)
  }

  drop({ unit }: NodeSeat): void {
    const units = this.#gpuCount === 1 ? unit.seats.map((seat) => seat.unit) : [unit]
    for (const each of units) {
      this.#held.drop(each)
      this.#order.remove(each.number)
      this.#units[each.number] = undefined
    }
  }

  /** The largest demand that any unit without holds admits. */
  maxMib(lane: number): Mib {
    return this.#order.maxValue(lane)
  }

  /**
   * The first unit without holds that admits so much, after `previous` if that is given; null when there is
   * none.
   */
  unitFor(lane: number, demandMib: Mib, previous: Unit | null): Unit | null {
    const number =
      previous === null
        ? this.#order.firstAtLeast(lane, demandMib)
        : this.#order.nextAtLeast(lane, previous.number, demandMib)
    return number < 0 ? null : (this.#units[number] as Unit)
  }

  /** What units with holds offer. */
  heldFor(lane: number): HeldLane {
    return this.#held.lane(lane)
  }

  #takeIn(unit: Unit): void {
    this.#units[unit.number] = unit
    this.#noteHolds(unit)
    const { key1, key2 } = this.#table
    const end = unit.firstSeat + unit.seats.length
    let sum1 = 0
    let sum2 = 0
    for (let seat = unit.firstSeat; seat < end; seat++) {
      sum1 += key1[seat] as number
      sum2 += key2[seat] as number
    }
    for (let lane = 0; lane < this.#values.length; lane++)
      this.#values[lane] = this.#kthLargestMib(unit, lane)
    this.#order.set(unit.number, sum1, sum2, this.#values)
  }

  #noteHolds(unit: Unit): void {
    const isHeldNow = this.#isHeld(unit)
    if (isHeldNow || this.#wasHeld[unit.number] === true) this.#held.touch(unit)
    this.#wasHeld[unit.number] = isHeldNow
  }

  #isHeld({ firstSeat, seats }: Unit): boolean {
    for (let seat = firstSeat; seat < firstSeat + seats.length; seat++)
      if (this.#table.isHeld[seat] === 1) return true
    return false
  }

  /** What it admits to those who pass over holds: nothing while it has any. */
  #openMib(seat: number, lane: number): Mib {
    return this.#table.isHeld[seat] === 1
      ? NOTHING
      : (this.#table.admitsMib[seat * this.#values.length + lane] as Mib)
  }

  /** What each of its best k GPUs admits at least; NOTHING when it has fewer. */
  #kthLargestMib({ firstSeat, seats }: Unit, lane: number): Mib {
    if (seats.length < this.#gpuCount) return NOTHING
    if (this.#gpuCount === 1) return this.#openMib(firstSeat, lane)
    const best = this.#best
    let size = 0
    for (let seat = firstSeat; seat < firstSeat + seats.length; seat++) {
      const mib = this.#openMib(seat, lane)
      if (size === this.#gpuCount && mib <= (best[size - 1] as Mib)) continue
      let at = size < this.#gpuCount ? size++ : size - 1
      for (; at > 0 && (best[at - 1] as Mib) < mib; at--) best[at] = best[at - 1] as Mib
      best[at] = mib
    }
    return best[this.#gpuCount - 1] as Mib
  }

  #unitOf(seat: Seat): Unit {
    return this.#gpuCount === 1 ? seat.unit : seat.node.unit
  }

  #seatOf(number: number): Seat {
    return (this.#units[number] as Unit).seats[0] as Seat
  }
}
