/**
 * What held GPUs leave to whom. Up to and including a holder, tasks see only the holds of those ahead of it; after the last holder all of them.
 * So a GPU with n holds gives n + 1 offers, each a demand and the last task in queue order that it stands for. For tasks on several GPUs the
 * offers are those of a node. Kept lazily: a unit that changed is looked at when somebody asks.
 */
import type { Mib } from '../../protocol/units.ts'
import { empty, insertAt, removeAt } from '../domain/list-edit.ts'
import type { Hold } from '../domain/node.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../domain/ordered-index.ts'
import { NOTHING } from '../scheduler/feasible.ts'
import type { Queued } from '../scheduler/queue.ts'
import { byQueueOrder } from '../scheduler/queue.ts'
import type { Seat, Unit } from './seats.ts'
import { isHeld, sortDescending } from './seats.ts'

interface Offer {
  readonly unit: Unit
  readonly order: number
}

/** Whom the last offer of a unit stands for: everybody. */
const EVERYBODY = Number.MAX_SAFE_INTEGER

export class HoldIndex {
  readonly #offers = new OrderedIndex<Offer>((a, b) => a.order - b.order)
  /** By the units' numbers; present for those with holds. */
  readonly #byUnit: (IndexEntry<Offer>[] | undefined)[] = []
  readonly #stale = new Set<Unit>()
  readonly #gpuCount: number
  readonly #wholeMib: (seat: Seat) => Mib
  readonly #scratchMib: Mib[] = []
  #heldUnits = 0
  #nextOrder = 0

  /** @param wholeMib what a GPU admits, its holds left aside */
  constructor(gpuCount: number, wholeMib: (seat: Seat) => Mib) {
    this.#gpuCount = gpuCount
    this.#wholeMib = wholeMib
  }

  get isEmpty(): boolean {
    return this.#heldUnits === 0 && this.#stale.size === 0
  }

  /** Its holds, or what its GPUs admit, changed. */
  touch(unit: Unit): void {
    if (this.#byUnit[unit.number] !== undefined || isHeld(unit)) this.#stale.add(unit)
  }

  /** The unit is no longer of this pool. */
  drop(unit: Unit): void {
    this.#stale.delete(unit)
    this.#remove(unit)
  }

  /** The largest demand offered to anybody. */
  maxMib(): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValue())
  }

  /** The largest demand offered to this task. */
  maxFrom(queued: Queued): Mib {
    this.#refresh()
    return Math.max(NOTHING, this.#offers.maxValueFrom(queued.queueClass, queued.task.spec.seq))
  }

  /** The units that offer this task so much. */
  *unitsFor(queued: Queued, demandMib: Mib): Generator<Unit> {
    this.#refresh()
    const seen = new Set<Unit>()
    for (const entry of this.#offers.entriesFrom(queued.queueClass, queued.task.spec.seq)) {
      if (entry.value < demandMib || seen.has(entry.item.unit)) continue
      seen.add(entry.item.unit)
      yield entry.item.unit
    }
  }

  #refresh(): void {
    if (this.#stale.size === 0) return
    for (const unit of this.#stale) {
      if (isHeld(unit)) this.#renew(unit)
      else this.#remove(unit)
    }
    this.#stale.clear()
  }

  /** As long as as many hold it, its offers keep their entries: what they say changes more often than whose they are. */
  #renew(unit: Unit): void {
    const holders = holdersOn(unit)
    const entries = this.#entriesOf(unit, holders.length + 1)
    for (let seen = 0; seen <= holders.length; seen++) {
      const entry = entries[seen] as IndexEntry<Offer>
      const next = holders[seen]
      const mib = this.#leftMib(unit, holders[seen - 1] ?? null)
      if (mib <= 0) this.#offers.remove(entry)
      else this.#offers.set(entry, next?.queueClass ?? EVERYBODY, next?.task.spec.seq ?? 0, mib)
    }
  }

  #entriesOf(unit: Unit, count: number): readonly IndexEntry<Offer>[] {
    const present = this.#byUnit[unit.number]
    if (present?.length === count) return present
    this.#remove(unit)
    const entries = Array.from({ length: count }, () => newIndexEntry<Offer>({ unit, order: this.#nextOrder++ }))
    this.#byUnit[unit.number] = entries
    this.#heldUnits += 1
    return entries
  }

  #remove(unit: Unit): void {
    const entries = this.#byUnit[unit.number]
    if (entries === undefined) return
    for (const entry of entries) this.#offers.remove(entry)
    this.#byUnit[unit.number] = undefined
    this.#heldUnits -= 1
  }

  /** What enough of these GPUs admit to a task that sees the holds up to and including `last`'s. */
  #leftMib({ seats }: Unit, last: Hold | null): Mib {
    if (seats.length < this.#gpuCount) return NOTHING
    const left = this.#scratchMib
    empty(left)
    for (const seat of seats) left.push(this.#wholeMib(seat) - (last === null ? 0 : keptMib(seat.gpu.holds, last)))
    if (left.length > 1) sortDescending(left)
    return left[this.#gpuCount - 1] as Mib
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

/** Holds on one GPU do not add up: who holds it is served one after the other. */
function keptMib(holds: readonly Hold[], last: Hold): Mib {
  let kept = 0
  for (const hold of holds) if (byQueueOrder(hold, last) <= 0) kept = Math.max(kept, hold.isExclusive ? Infinity : hold.mib)
  return kept
}
