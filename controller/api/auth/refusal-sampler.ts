/**
 * Refusals can be caused by the thousand: of each source the first of a minute are kept, and the next one
 * says how many were left out.
 */
import type { DurationMs, Instant } from '../../../protocol/units.ts'

const WINDOW_MS: DurationMs = 60_000
/** Kept of one source in a window. */
const KEPT_OF_SOURCE = 30
/** Kept of all sources in a window. */
const KEPT_OF_ALL = 600
/** Sources that are told apart in a window; further ones count as one. */
const MAX_SOURCES = 1_000
const OTHERS = 'others'

interface Seen {
  kept: number
  leftOut: number
}

export class RefusalSampler {
  readonly #seen = new Map<string, Seen>()
  #since: Instant = -Infinity
  #kept = 0

  /** null: leave it out. Else how many of this source were left out before it. */
  keep(source: string, now: Instant): number | null {
    if (now - this.#since >= WINDOW_MS) this.#beginWindow(now)
    const key = this.#seen.has(source) || this.#seen.size < MAX_SOURCES ? source : OTHERS
    const seen = this.#seen.get(key) ?? { kept: 0, leftOut: 0 }
    this.#seen.set(key, seen)
    if (seen.kept >= KEPT_OF_SOURCE || this.#kept >= KEPT_OF_ALL) {
      seen.leftOut += 1
      return null
    }
    const { leftOut } = seen
    seen.kept += 1
    seen.leftOut = 0
    this.#kept += 1
    return leftOut
  }

  /** What was left out stays known until its source is seen again. */
  #beginWindow(now: Instant): void {
    this.#since = now
    this.#kept = 0
    for (const [source, seen] of this.#seen) {
      if (seen.leftOut === 0) this.#seen.delete(source)
      else seen.kept = 0
    }
  }
}
