/**
 * Answers how large the largest capacity gain since a point in time was. Each gain has a number. Gains hidden
 * by a later, larger one are dropped, so that the log is a descending list.
 */
import type { Mib } from '../../../protocol/units.ts'

/** Beyond this the older half is dropped; older queries are told that anything may have grown. */
const MAX_KEPT = 64

export class CapacityGainLog {
  /** Number of gains so far. */
  count = 0
  readonly #numbers: number[] = []
  readonly #mibs: Mib[] = []
  /** Gains up to this number have been dropped. */
  #forgottenTo = 0

  add(mib: Mib): void {
    this.count += 1
    while (this.#mibs.length > 0 && (this.#mibs[this.#mibs.length - 1] as Mib) <= mib) {
      this.#mibs.pop()
      this.#numbers.pop()
    }
    this.#mibs.push(mib)
    this.#numbers.push(this.count)
    if (this.#mibs.length > MAX_KEPT) this.#forget()
  }

  /** Returns the largest value gained after gain number `count`; -Infinity if there was none. */
  largestSince(count: number): Mib {
    if (count === this.count) return -Infinity
    if (count < this.#forgottenTo) return Infinity
    let at = this.#numbers.length - 1
    while (at > 0 && (this.#numbers[at - 1] as number) > count) at -= 1
    return this.#mibs[at] as Mib
  }

  #forget(): void {
    const half = this.#mibs.length >>> 1
    this.#forgottenTo = this.#numbers[half - 1] as number
    this.#numbers.splice(0, half)
    this.#mibs.splice(0, half)
  }
}
