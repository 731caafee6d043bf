/**
 * A ranking of a pool: its GPUs (for one GPU) or its nodes (for several) in order of preference, with the
 * demand they admit per kind of request. One ranking serves all kinds; changes are applied lazily.
 */
import type { Mib } from '../../../protocol/units.ts'
import { clear } from '../../structures/list-edit.ts'
import { OrderedTable } from '../../structures/ordered-table.ts'
import { NOTHING } from '../../policy/placement/feasible.ts'
import { byGpuId, byNodeId } from '../../policy/placement/score.ts'
import type { KindOffers } from './reservation-index.ts'
import { ReservationIndex } from './reservation-index.ts'
import type { MemberColumns, NodeMember, PoolMember, Unit } from './pool-members.ts'

export class PoolRanking {
  readonly #table: MemberColumns
  readonly #gpuCount: number
  readonly #order: OrderedTable
  /** By unit number. A unit is offered as a whole: one GPU or a node. */
  readonly #units: (Unit | undefined)[] = []
  readonly #isUnseen: boolean[] = []
  readonly #unseen: PoolMember[] = []
  readonly #hadReservations: boolean[] = []
  readonly #reserved: ReservationIndex
  /** Scratch: the values of the unit that is being updated, by column. */
  readonly #values: Float64Array
  /** Scratch: demands admitted by its best GPUs, largest first. */
  readonly #best: Mib[] = []

  constructor(table: MemberColumns, gpuCount: number) {
    this.#table = table
    this.#gpuCount = gpuCount
    this.#values = new Float64Array(table.columns)
    this.#reserved = new ReservationIndex(gpuCount, table)
    this.#order = new OrderedTable(table.columns, (a, b) => {
      const one = this.#memberOf(a)
      const other = this.#memberOf(b)
      return gpuCount === 1 ? byGpuId(one.gpu, other.gpu) : byNodeId(one.gpu.node, other.gpu.node)
    })
  }

  /** The GPU's figures or reservations changed. */
  mark(member: PoolMember): void {
    const { number } = this.#unitOf(member)
    if (this.#isUnseen[number] === true) return
    this.#isUnseen[number] = true
    this.#unseen.push(member)
  }

  catchUp(): void {
    if (this.#unseen.length === 0) return
    for (const member of this.#unseen) {
      const unit = this.#unitOf(member)
      this.#isUnseen[unit.number] = false
      if (member.node.isMember) this.#takeIn(unit)
    }
    clear(this.#unseen)
  }

  drop({ unit }: NodeMember): void {
    const units = this.#gpuCount === 1 ? unit.members.map((member) => member.unit) : [unit]
    for (const each of units) {
      this.#reserved.drop(each)
      this.#order.remove(each.number)
      this.#units[each.number] = undefined
    }
  }

  /** Returns the largest demand that any unit without reservations admits. */
  maxMib(column: number): Mib {
    return this.#order.maxValue(column)
  }

  /**
   * Returns the first unit without reservations that admits the demand, after `previous` if given; null if
   * none exists.
   */
  unitFor(column: number, demandMib: Mib, previous: Unit | null): Unit | null {
    const number =
      previous === null
        ? this.#order.firstAtLeast(column, demandMib)
        : this.#order.nextAtLeast(column, previous.number, demandMib)
    return number < 0 ? null : (this.#units[number] as Unit)
  }

  /** Returns the offers of units with reservations. */
  reservedOffersFor(column: number): KindOffers {
    return this.#reserved.offersFor(column)
  }

  #takeIn(unit: Unit): void {
    this.#units[unit.number] = unit
    this.#updateReserved(unit)
    const { key1, key2 } = this.#table
    const end = unit.firstMember + unit.members.length
    let sum1 = 0
    let sum2 = 0
    for (let member = unit.firstMember; member < end; member++) {
      sum1 += key1[member] as number
      sum2 += key2[member] as number
    }
    for (let column = 0; column < this.#values.length; column++)
      this.#values[column] = this.#kthLargestMib(unit, column)
    this.#order.set(unit.number, sum1, sum2, this.#values)
  }

  #updateReserved(unit: Unit): void {
    const isHeldNow = this.#hasReservations(unit)
    if (isHeldNow || this.#hadReservations[unit.number] === true) this.#reserved.touch(unit)
    this.#hadReservations[unit.number] = isHeldNow
  }

  #hasReservations({ firstMember, members }: Unit): boolean {
    for (let member = firstMember; member < firstMember + members.length; member++)
      if (this.#table.hasReservations[member] === 1) return true
    return false
  }

  /** The demand admitted to tasks that bypass reservations: NOTHING while there is one. */
  #openMib(member: number, column: number): Mib {
    return this.#table.hasReservations[member] === 1
      ? NOTHING
      : (this.#table.admitsMib[member * this.#values.length + column] as Mib)
  }

  /** Returns the demand that each of its best k GPUs admits; NOTHING if it has fewer. */
  #kthLargestMib({ firstMember, members }: Unit, column: number): Mib {
    if (members.length < this.#gpuCount) return NOTHING
    if (this.#gpuCount === 1) return this.#openMib(firstMember, column)
    const best = this.#best
    let size = 0
    for (let member = firstMember; member < firstMember + members.length; member++) {
      const mib = this.#openMib(member, column)
      if (size === this.#gpuCount && mib <= (best[size - 1] as Mib)) continue
      let at = size < this.#gpuCount ? size++ : size - 1
      for (; at > 0 && (best[at - 1] as Mib) < mib; at--) best[at] = best[at - 1] as Mib
      best[at] = mib
    }
    return best[this.#gpuCount - 1] as Mib
  }

  #unitOf(member: PoolMember): Unit {
    return this.#gpuCount === 1 ? member.unit : member.node.unit
  }

  #memberOf(number: number): PoolMember {
    return (this.#units[number] as Unit).members[0] as PoolMember
  }
}
