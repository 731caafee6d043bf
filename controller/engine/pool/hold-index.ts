/**
 * What held GPUs leave to whom. Up to and including a holder, tasks see only the holds of those ahead of it;
 * after the last holder all of them. So a GPU with n holds gives n + 1 offers, each a demand for every kind
 * of request and the last task in queue order that it stands for. For tasks on several GPUs the offers are
 * those of a node. Kept lazily: a unit that changed is looked at when somebody asks.
 */
import type { Mib } from '../../../protocol/units.ts'
import { empty, insertAt, removeAt } from '../../domain/list-edit.ts'
import type { Hold } from '../../domain/node.ts'
import { OrderedTable } from '../../domain/ordered-table.ts'
import { NOTHING } from '../../scheduler/feasible.ts'
import type { Queued } from '../../scheduler/queue.ts'
import { byQueueOrder } from '../../scheduler/queue.ts'
import type { HeldOffers } from '../../scheduler/schedule.ts'
import { keepsCommitRoom, leftBesideHoldsMib } from '../../scheduler/schedule.ts'
import { kindOfLane } from './lanes.ts'
import type { SeatTable } from './seat-table.ts'
import type { Seat, Unit } from './seats.ts'
import { isHeld, sortDescending } from './seats.ts'

/** Whom the last offer of a unit stands for: everybody. */
const EVERYBODY = Number.MAX_SAFE_INTEGER

export class HoldIndex {
  readonly #table: SeatTable
  readonly #gpuCount: number
  /** Offers by their numbers, in the order of whom they stand for. */
  readonly #offers: OrderedTable
  readonly #unitOf: (Unit | undefined)[] = []
  readonly #freeNumbers: number[] = []
  /** By the units' numbers; present for those with holds. */
  readonly #offersOf: (readonly number[] | undefined)[] = []
  readonly #stale = new Set<Unit>()
  readonly #lanes: readonly HeldLane[]
  /** Of the offer that is being made: by lane, by seat, and of the best GPUs. */
  readonly #offeredMib: Float64Array
  readonly #keptMib: Mib[] = []
  readonly #keptRoomMib: Mib[] = []
  readonly #leftMib: Mib[] = []
  #heldUnits = 0
  #nextNumber = 0

  /** @param table what a GPU admits, its holds left aside */
  constructor(gpuCount: number, table: SeatTable) {
    this.#gpuCount = gpuCount
    this.#table = table
    this.#offers = new OrderedTable(table.lanes, (a, b) => a - b)
    this.#offeredMib = new Float64Array(table.lanes)
    this.#lanes = Array.from({ length: table.lanes }, (_, lane) => new HeldLane(this, lane))
  }

  get isEmpty(): boolean {
    return this.#heldUnits === 0 && this.#stale.size === 0
  }

  /** What is offered to one kind of request. */
  lane(lane: number): HeldLane {
    return this.#lanes[lane] as HeldLane
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

  maxMib(lane: number): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValue(lane))
  }

  maxFrom(lane: number, queued: Queued): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValueFrom(lane, queued.queueClass, queued.task.spec.seq))
  }

  unitsFor(lane: number, queued: Queued, demandMib: Mib): ReadonlySet<Unit> {
    this.#refresh()
    const units = new Set<Unit>()
    for (const offer of this.#offers.itemsFrom(lane, queued.queueClass, queued.task.spec.seq, demandMib)) {
      units.add(this.#unitOf[offer] as Unit)
    }
    return units
  }

  #refresh(): void {
    if (this.#stale.size === 0) return
    for (const unit of this.#stale) {
      if (isHeld(unit)) this.#renew(unit)
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
        next?.queueClass ?? EVERYBODY,
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
    this.#heldUnits += 1
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
    this.#heldUnits -= 1
  }

  /** What enough of these GPUs admit to a task that sees the holds up to and including `last`'s. */
  #offer({ firstSeat, seats }: Unit, last: Hold | null): void {
    const { admitsMib, lanes, when } = this.#table
    const kept = this.#keptMib
    const keptRoom = this.#keptRoomMib
    for (let place = 0; place < seats.length; place++) {
      const holds = seats[place]?.gpu.holds ?? []
      kept[place] = last === null ? 0 : keptMib(holds, last, false)
      keptRoom[place] = last === null ? 0 : keptMib(holds, last, true)
    }
    for (let lane = 0; lane < lanes; lane++) {
      const left = this.#leftMib
      const kind = kindOfLane(when, lane)
      empty(left)
      for (let place = 0; place < seats.length; place++) {
        const largestMib = admitsMib[(firstSeat + place) * lanes + lane] as Mib
        const { gpu } = seats[place] as Seat
        left.push(leftBesideHoldsMib(gpu, kind, largestMib, kept[place] as Mib, keptRoom[place] as Mib))
      }
      if (left.length > 1) sortDescending(left)
      const mib = left[this.#gpuCount - 1] ?? NOTHING
      this.#offeredMib[lane] = mib <= 0 ? NOTHING : mib
    }
  }
}

/** The offers to one kind of request. */
export class HeldLane implements HeldOffers {
  readonly #index: HoldIndex
  readonly #lane: number

  constructor(index: HoldIndex, lane: number) {
    this.#index = index
    this.#lane = lane
  }

  get isEmpty(): boolean {
    return this.#index.isEmpty
  }

  /** The largest demand offered to anybody. */
  maxMib(): Mib {
    return this.#index.maxMib(this.#lane)
  }

  /** The largest demand offered to this task. */
  maxFrom(queued: Queued): Mib {
    return this.#index.maxFrom(this.#lane, queued)
  }

  /** The units that offer this task so much. */
  unitsFor(queued: Queued, demandMib: Mib): ReadonlySet<Unit> {
    return this.#index.unitsFor(this.#lane, queued, demandMib)
  }
}

/** Everybody with a hold on some of these GPUs, in queue order. */
function holdersOn({ seats }: Unit): readonly Hold[] {
  const [only] = seats
  if (seats.length === 1 && only !== undefined && only.gpu.holds.length < 2) return only.gpu.holds
  const holders: Hold[] = []
  for (const { gpu } of seats) {
    for (const hold of gpu.holds) {
      const before = holders.findIndex((other) => other.task === hold.task)
      removeAt(holders, before)
      let at = holders.length
      while (at > 0 && byQueueOrder(hold, holders[at - 1] as Hold) < 0) at -= 1
      insertAt(holders, at, hold)
    }
  }
  return holders
}

/**
 * Holds on one GPU do not add up: who holds it is served one after the other.
 * @param isOfRoom of the holds that keep commit room only
 */
function keptMib(holds: readonly Hold[], last: Hold, isOfRoom: boolean): Mib {
  let kept = 0
  for (const hold of holds) {
    if (byQueueOrder(hold, last) > 0 || (isOfRoom && !keepsCommitRoom(hold))) continue
    kept = Math.max(kept, hold.isExclusive ? Infinity : hold.mib)
  }
  return kept
}
