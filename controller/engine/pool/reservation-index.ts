/**
 * What held GPUs leave to whom. Up to and including a holder, tasks see only the holds of those ahead of it;
 * after the last holder all of them. So a GPU with n holds gives n + 1 offers, each a demand for every kind
 * of request and the last task in queue order that it stands for. For tasks on several GPUs the offers are
 * those of a node. Kept lazily: a unit that changed is looked at when somebody asks.
 */
import type { Mib } from '../../../protocol/units.ts'
import { clear, insertAt, removeAt } from '../../domain/list-edit.ts'
import type { Reservation } from '../../domain/node.ts'
import { OrderedTable } from '../../domain/ordered-table.ts'
import { NOTHING } from '../../scheduler/feasible.ts'
import type { Queued } from '../../scheduler/queue.ts'
import { byQueueOrder } from '../../scheduler/queue.ts'
import type { ReservedOffers } from '../../scheduler/schedule.ts'
import { keepsCommitRoom, leftByReservationsMib } from '../../scheduler/schedule.ts'
import { kindOfColumn } from './request-columns.ts'
import type { MemberTable } from './member-table.ts'
import type { PoolMember, Unit } from './pool-members.ts'
import { hasReservations, sortDescending } from './pool-members.ts'

/** Whom the last offer of a unit stands for: everybody. */
const ALL_TASKS = Number.MAX_SAFE_INTEGER

export class ReservationIndex {
  readonly #table: MemberTable
  readonly #gpuCount: number
  /** Offers by their numbers, in the order of whom they stand for. */
  readonly #offers: OrderedTable
  readonly #unitOf: (Unit | undefined)[] = []
  readonly #freeNumbers: number[] = []
  /** By the units' numbers; present for those with holds. */
  readonly #offersOf: (readonly number[] | undefined)[] = []
  readonly #stale = new Set<Unit>()
  readonly #offersByColumn: readonly KindOffers[]
  /** Of the offer that is being made: by lane, by seat, and of the best GPUs. */
  readonly #offeredMib: Float64Array
  readonly #keptMib: Mib[] = []
  readonly #keptRoomMib: Mib[] = []
  readonly #leftMib: Mib[] = []
  #reservedUnits = 0
  #nextNumber = 0

  /** @param table what a GPU admits, its holds left aside */
  constructor(gpuCount: number, table: MemberTable) {
    this.#gpuCount = gpuCount
    this.#table = table
    this.#offers = new OrderedTable(table.columns, (a, b) => a - b)
    this.#offeredMib = new Float64Array(table.columns)
    this.#offersByColumn = Array.from({ length: table.columns }, (_, column) => new KindOffers(this, column))
  }

  get isEmpty(): boolean {
    return this.#reservedUnits === 0 && this.#stale.size === 0
  }

  /** What is offered to one kind of request. */
  offersFor(column: number): KindOffers {
    return this.#offersByColumn[column] as KindOffers
  }

  /** Its holds, or what its GPUs admit, changed. */
  touch(unit: Unit): void {
    this.#stale.add(unit)
  }

  /** The unit is no longer of this pool. */
  drop(unit: Unit): void {
    this.#stale.delete(unit)
    this.#remove(unit)
  }

  maxMib(column: number): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValue(column))
  }

  maxFrom(column: number, queued: Queued): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValueFrom(column, queued.queueClass, queued.task.spec.seq))
  }

  unitsFor(column: number, queued: Queued, demandMib: Mib): ReadonlySet<Unit> {
    this.#refresh()
    const units = new Set<Unit>()
    for (const offer of this.#offers.itemsFrom(column, queued.queueClass, queued.task.spec.seq, demandMib)) {
      units.add(this.#unitOf[offer] as Unit)
    }
    return units
  }

  #refresh(): void {
    if (this.#stale.size === 0) return
    for (const unit of this.#stale) {
      if (hasReservations(unit)) this.#renew(unit)
      else this.#remove(unit)
    }
    this.#stale.clear()
  }

  /**
   * As long as as many hold it, its offers keep their numbers: what they say changes more often than whose
   * they are.
   */
  #renew(unit: Unit): void {
    const holders = holdersOn(unit)
    const offers = this.#offersFor(unit, holders.length + 1)
    for (let seen = 0; seen <= holders.length; seen++) {
      const next = holders[seen]
      this.#offer(unit, holders[seen - 1] ?? null)
      this.#offers.set(
        offers[seen] as number,
        next?.queueClass ?? ALL_TASKS,
        next?.task.spec.seq ?? 0,
        this.#offeredMib,
      )
    }
  }

  #offersFor(unit: Unit, count: number): readonly number[] {
    const present = this.#offersOf[unit.number]
    if (present?.length === count) return present
    this.#remove(unit)
    const offers = Array.from({ length: count }, () => this.#freeNumbers.pop() ?? this.#nextNumber++)
    for (const offer of offers) this.#unitOf[offer] = unit
    this.#offersOf[unit.number] = offers
    this.#reservedUnits += 1
    return offers
  }

  #remove(unit: Unit): void {
    const offers = this.#offersOf[unit.number]
    if (offers === undefined) return
    for (const offer of offers) {
      this.#offers.remove(offer)
      this.#unitOf[offer] = undefined
      this.#freeNumbers.push(offer)
    }
    this.#offersOf[unit.number] = undefined
    this.#reservedUnits -= 1
  }

  /** What enough of these GPUs admit to a task that sees the holds up to and including `last`'s. */
  #offer({ firstMember, members }: Unit, last: Reservation | null): void {
    const { admitsMib, columns, when } = this.#table
    const kept = this.#keptMib
    const keptRoom = this.#keptRoomMib
    for (let place = 0; place < members.length; place++) {
      const reservations = members[place]?.gpu.reservations ?? []
      kept[place] = last === null ? 0 : keptMib(reservations, last, false)
      keptRoom[place] = last === null ? 0 : keptMib(reservations, last, true)
    }
    for (let column = 0; column < columns; column++) {
      const left = this.#leftMib
      const kind = kindOfColumn(when, column)
      clear(left)
      for (let place = 0; place < members.length; place++) {
        const largestMib = admitsMib[(firstMember + place) * columns + column] as Mib
        const { gpu } = members[place] as PoolMember
        left.push(leftByReservationsMib(gpu, kind, largestMib, kept[place] as Mib, keptRoom[place] as Mib))
      }
      if (left.length > 1) sortDescending(left)
      const mib = left[this.#gpuCount - 1] ?? NOTHING
      this.#offeredMib[column] = mib <= 0 ? NOTHING : mib
    }
  }
}

/** The offers to one kind of request. */
export class KindOffers implements ReservedOffers {
  readonly #index: ReservationIndex
  readonly #column: number

  constructor(index: ReservationIndex, column: number) {
    this.#index = index
    this.#column = column
  }

  get isEmpty(): boolean {
    return this.#index.isEmpty
  }

  /** The largest demand offered to anybody. */
  maxMib(): Mib {
    return this.#index.maxMib(this.#column)
  }

  /** The largest demand offered to this task. */
  maxFrom(queued: Queued): Mib {
    return this.#index.maxFrom(this.#column, queued)
  }

  /** The units that offer this task so much. */
  unitsFor(queued: Queued, demandMib: Mib): ReadonlySet<Unit> {
    return this.#index.unitsFor(this.#column, queued, demandMib)
  }
}

/** Everybody with a hold on some of these GPUs, in queue order. */
function holdersOn({ members }: Unit): readonly Reservation[] {
  const [only] = members
  if (members.length === 1 && only !== undefined && only.gpu.reservations.length < 2)
    return only.gpu.reservations
  const holders: Reservation[] = []
  for (const { gpu } of members) {
    for (const reservation of gpu.reservations) {
      const before = holders.findIndex((other) => other.task === reservation.task)
      removeAt(holders, before)
      let at = holders.length
      while (at > 0 && byQueueOrder(reservation, holders[at - 1] as Reservation) < 0) at -= 1
      insertAt(holders, at, reservation)
    }
  }
  return holders
}

/**
 * Holds on one GPU do not add up: who holds it is served one after the other.
 * @param isOfRoom of the holds that keep commit room only
 */
function keptMib(reservations: readonly Reservation[], last: Reservation, isOfRoom: boolean): Mib {
  let kept = 0
  for (const reservation of reservations) {
    if (byQueueOrder(reservation, last) > 0 || (isOfRoom && !keepsCommitRoom(reservation))) continue
    kept = Math.max(kept, reservation.isExclusive ? Infinity : reservation.mib)
  }
  return kept
}
