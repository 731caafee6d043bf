/**
 * What GPUs with reservations offer to which tasks. Tasks up to and including a holder see only the
 * reservations ahead of them; later tasks see all. So a GPU with n reservations makes n + 1 offers, each with
 * a demand per kind of request and the last task in queue order that it applies to. For tasks on several GPUs
 * the offers are those of a node. Updated lazily.
 */
import type { Mib } from '../../../protocol/units.ts'
import { clear, insertAt, removeAt } from '../../structures/list-edit.ts'
import type { Reservation } from '../../model/placement.ts'
import { OrderedTable } from '../../structures/ordered-table.ts'
import { NOTHING } from '../../policy/placement/feasible.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import { byQueueOrder } from '../../policy/placement/queue.ts'
import type { ReservedOffers } from '../../policy/placement/schedule.ts'
import { keepsCommitRoom, leftByReservationsMib } from '../../policy/placement/schedule.ts'
import { kindOfColumn } from './request-columns.ts'
import type { MemberColumns, PoolMember, Unit } from './pool-members.ts'
import { hasReservations, sortDescending } from './pool-members.ts'

/** The last offer of a unit applies to all remaining tasks. */
const ALL_TASKS = Number.MAX_SAFE_INTEGER

export class ReservationIndex {
  readonly #table: MemberColumns
  readonly #gpuCount: number
  /** Offers by number, in the order of the tasks they apply to. */
  readonly #offers: OrderedTable
  readonly #unitOf: (Unit | undefined)[] = []
  readonly #freeNumbers: number[] = []
  /** By unit number; present for units with reservations. */
  readonly #offersOf: (readonly number[] | undefined)[] = []
  readonly #stale = new Set<Unit>()
  readonly #offersByColumn: readonly KindOffers[]
  /** Scratch for the offer being made: by column, by member, and of the best GPUs. */
  readonly #offeredMib: Float64Array
  readonly #keptMib: Mib[] = []
  readonly #keptRoomMib: Mib[] = []
  readonly #leftMib: Mib[] = []
  #reservedUnits = 0
  #nextNumber = 0

  /** @param table the demand that a GPU admits, ignoring its reservations */
  constructor(gpuCount: number, table: MemberColumns) {
    this.#gpuCount = gpuCount
    this.#table = table
    this.#offers = new OrderedTable(table.columns, (a, b) => a - b)
    this.#offeredMib = new Float64Array(table.columns)
    this.#offersByColumn = Array.from({ length: table.columns }, (_, column) => new KindOffers(this, column))
  }

  get isEmpty(): boolean {
    return this.#reservedUnits === 0 && this.#stale.size === 0
  }

  /** Returns the offers to one kind of request. */
  offersFor(column: number): KindOffers {
    return this.#offersByColumn[column] as KindOffers
  }

  /** Its reservations, or the demands its GPUs admit, changed. */
  touch(unit: Unit): void {
    this.#stale.add(unit)
  }

  /** The unit has left this pool. */
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
   * With the same number of holders the offers keep their numbers: their values change more often than their
   * holders.
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

  /** Makes the offer to tasks that see the reservations up to and including `last`. */
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

  /** The largest demand offered to any task. */
  maxMib(): Mib {
    return this.#index.maxMib(this.#column)
  }

  /** The largest demand offered to this task. */
  maxFrom(queued: Queued): Mib {
    return this.#index.maxFrom(this.#column, queued)
  }

  /** The units that offer this task the demand. */
  unitsFor(queued: Queued, demandMib: Mib): ReadonlySet<Unit> {
    return this.#index.unitsFor(this.#column, queued, demandMib)
  }
}

/** All reservations on these GPUs, one per task, in queue order. */
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
 * Reservations on one GPU do not add up: their holders are served one after the other.
 * @param isOfRoom only reservations that keep commit room
 */
function keptMib(reservations: readonly Reservation[], last: Reservation, isOfRoom: boolean): Mib {
  let kept = 0
  for (const reservation of reservations) {
    if (byQueueOrder(reservation, last) > 0 || (isOfRoom && !keepsCommitRoom(reservation))) continue
    kept = Math.max(kept, reservation.isExclusive ? Infinity : reservation.mib)
  }
  return kept
}
