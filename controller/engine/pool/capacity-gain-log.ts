/**
 * By how much did the best of those that rose rise since somebody looked? Each rise has a number; of those
 * that a later and larger one hides nothing is kept, so that the log is a list of falling values.
 */
import type { Mib } from '../../../protocol/units.ts'

/** Past this the older half is given up: who looked before it is told that anything may have risen. */
const MAX_KEPT = 64

export class CapacityGainLog {
  /** How many rises there were. */
  count = 0
  readonly #numbers: number[] = []
  readonly #mibs: Mib[] = []
  /** Rises up to this number are no longer told apart. */
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

  /**
   * The largest value that anything has risen to since there were so many rises; -Infinity when nothing has
   * risen.
   */
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
