/**
 * Limit of all copies of a node through its host memory. Bytes pass in the order in which the copies begin,
 * so together they never exceed the limit; a single copy never exceeds its GPU's own link either.
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'

export class HostLink {
  readonly #mibPerS: number | null
  #busyUntil: Instant = 0

  /** @param mibPerS 1 or more; null: no limit */
  constructor(mibPerS: number | null) {
    this.#mibPerS = mibPerS
  }

  /**
   * Adds a copy of `mib` in total, whose bytes begin to move at `from`.
   * @param aloneMs duration of its bytes over the GPU's own link
   * @returns when its last byte has passed
   */
  pass(from: Instant, mib: Mib, aloneMs: DurationMs): Instant {
    if (this.#mibPerS === null) return from + aloneMs
    this.#busyUntil = Math.max(this.#busyUntil, from) + Math.ceil((mib * 1000) / this.#mibPerS)
    return Math.max(from + aloneMs, this.#busyUntil)
  }
}
