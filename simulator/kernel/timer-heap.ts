/**
 * Timers in virtual time, as columns of numbers: a heap with four children per node; an instant, and one
 * number for rank and ticket. A timer that was set again or cleared stays in place; its ticket no longer
 * matches, and it is dropped when its turn comes.
 */
import type { TimerRank } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'

/** A timer; its ticket says which of its entries is valid. */
export interface Ticketed {
  readonly rank: TimerRank
  /** Grows with every timer that is set; 0 while it is not set. */
  readonly ticket: number
}

const FIRST_ROOM = 1024
/** Maximum number of tickets, so that rank and ticket fit in one exact number. */
const TICKETS = 2_251_799_813_685_248

export class TimerHeap<T extends Ticketed> {
  #ats = new Float64Array(FIRST_ROOM)
  /** Lower rank first, then lower ticket. */
  #orders = new Float64Array(FIRST_ROOM)
  readonly #timers: T[] = []
  #size = 0

  /** The earliest planned instant; Infinity without one. */
  nextAt(): Instant {
    while (this.#size > 0) {
      const first = this.#timers[0] as T
      if (first.ticket > 0 && orderOf(first) === this.#orders[0]) return this.#ats[0] as Instant
      this.pop()
    }
    return Infinity
  }

  push(at: Instant, timer: T): void {
    const order = orderOf(timer)
    let place = this.#size++
    if (place === this.#ats.length) this.#grow()
    const ats = this.#ats
    const orders = this.#orders
    const timers = this.#timers
    while (place > 0) {
      const parent = (place - 1) >>> 2
      const parentAt = ats[parent] as number
      if (at > parentAt || (at === parentAt && order > (orders[parent] as number))) break
      ats[place] = parentAt
      orders[place] = orders[parent] as number
      timers[place] = timers[parent] as T
      place = parent
    }
    ats[place] = at
    orders[place] = order
    timers[place] = timer
  }

  /** Removes and returns the first entry, valid or not; there must be one. */
  pop(): T {
    const ats = this.#ats
    const orders = this.#orders
    const timers = this.#timers
    const first = timers[0] as T
    const size = --this.#size
    const at = ats[size] as number
    const order = orders[size] as number
    const timer = timers.pop() as T
    if (size === 0) return first
    let place = 0
    for (;;) {
      let child = 4 * place + 1
      if (child >= size) break
      let childAt = ats[child] as number
      const end = Math.min(child + 4, size)
      for (let other = child + 1; other < end; other++) {
        const otherAt = ats[other] as number
        if (
          otherAt > childAt ||
          (otherAt === childAt && (orders[other] as number) > (orders[child] as number))
        )
          continue
        child = other
        childAt = otherAt
      }
      if (childAt > at || (childAt === at && (orders[child] as number) > order)) break
      ats[place] = childAt
      orders[place] = orders[child] as number
      timers[place] = timers[child] as T
      place = child
    }
    ats[place] = at
    orders[place] = order
    timers[place] = timer
    return first
  }

  #grow(): void {
    const ats = new Float64Array(2 * this.#ats.length)
    const orders = new Float64Array(2 * this.#ats.length)
    ats.set(this.#ats)
    orders.set(this.#orders)
    this.#ats = ats
    this.#orders = orders
  }
}

function orderOf({ rank, ticket }: Ticketed): number {
  return rank * TICKETS + ticket
}
