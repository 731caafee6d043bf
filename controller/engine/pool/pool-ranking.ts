/**
 * One order of a pool: its GPUs (one GPU asked for) or its nodes (several) in the order of preference, with
 * what they admit to each kind of request. One order serves all kinds; what changed is taken in when somebody
 * asks.
 */
import type { Mib } from '../../../protocol/units.ts'
import { clear } from '../../domain/list-edit.ts'
import { OrderedTable } from '../../domain/ordered-table.ts'
import { NOTHING } from '../../scheduler/feasible.ts'
import { byGpuId, byNodeId } from '../../scheduler/score.ts'
import type { KindOffers } from './reservation-index.ts'
import { ReservationIndex } from './reservation-index.ts'
import type { MemberTable } from './member-table.ts'
import type { NodeMember, PoolMember, Unit } from './pool-members.ts'

export class PoolRanking {
  readonly #table: MemberTable
  readonly #gpuCount: number
  readonly #order: OrderedTable
  /** By the numbers of units: what is offered together, one GPU or a node. */
  readonly #units: (Unit | undefined)[] = []
  readonly #isUnseen: boolean[] = []
  readonly #unseen: PoolMember[] = []
  readonly #hadReservations: boolean[] = []
  readonly #reserved: ReservationIndex
  /** Of the unit that is being taken in, by lane. */
  readonly #values: Float64Array
  /** What its best GPUs admit, the best first. */
  readonly #best: Mib[] = []

  constructor(table: MemberTable, gpuCount: number) {
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

  /** The GPU's figures or holds changed. */
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

  /** The largest demand that any unit without holds admits. */
  maxMib(column: number): Mib {
    return this.#order.maxValue(column)
  }

  /**
   * The first unit without holds that admits so much, after `previous` if that is given; null when there is
   * none.
   */
  unitFor(column: number, demandMib: Mib, previous: Unit | null): Unit | null {
    const number =
      previous === null
        ? this.#order.firstAtLeast(column, demandMib)
        : this.#order.nextAtLeast(column, previous.number, demandMib)
    return number < 0 ? null : (this.#units[number] as Unit)
  }

  /** What units with holds offer. */
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

  /** What it admits to those who pass over holds: nothing while it has any. */
  #openMib(member: number, column: number): Mib {
    return this.#table.hasReservations[member] === 1
      ? NOTHING
      : (this.#table.admitsMib[member * this.#values.length + column] as Mib)
  }

  /** What each of its best k GPUs admits at least; NOTHING when it has fewer. */
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
