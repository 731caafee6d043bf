/**
 * What all copies of a node together may move through its host memory. Their bytes pass in the order in which
 * the copies begin, so that together they are never quicker than this; each is never quicker than its own
 * GPU's link either.
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'

export class HostLink {
  readonly #mibPerS: number | null
  #busyUntil: Instant = 0

  /** @param mibPerS 1 or more; null: nothing is shared. */
  constructor(mibPerS: number | null) {
    this.#mibPerS = mibPerS
  }

  /**
   * A copy of `mib` in all, whose bytes begin to move at `from`.
   * @param aloneMs how long its bytes take over the GPU's own link
   * @returns when its last byte has passed
   */
  pass(from: Instant, mib: Mib, aloneMs: DurationMs): Instant {
    if (this.#mibPerS === null) return from + aloneMs
    this.#busyUntil = Math.max(this.#busyUntil, from) + Math.ceil((mib * 1000) / this.#mibPerS)
    return Math.max(from + aloneMs, this.#busyUntil)
  }
}
