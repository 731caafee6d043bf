/** The last minute: what the cluster's counters grew by since a reading about a minute ago. */
import type { DurationMs, Instant, Microseconds } from '../../protocol/units.ts'
import type { Views } from '../engine/views.ts'
import { differenceOf, sumOf, ZERO_COUNTERS, type Counters } from '../metrics/counters.ts'
import type { Sampler } from './sampler.ts'

export interface SeriesWindow {
  readonly from: Instant
  readonly to: Instant
  /** What the counters grew by, of the nodes that were heard. */
  readonly counters: Counters
  /** Time of the GPUs of those nodes. */
  readonly knownUs: Microseconds
}

const WINDOW_MS: DurationMs = 60_000
const SHORTEST_MS: DurationMs = 1_000

/** Totals since the first reading. */
interface Reading {
  readonly at: Instant
  readonly counters: Counters
  readonly knownUs: Microseconds
}

export class RecentWindow {
  readonly #views: Views
  readonly #sampler: Sampler
  /** Oldest first; at most one is older than the window. */
  readonly #kept: Reading[] = []

  constructor(views: Views, sampler: Sampler) {
    this.#views = views
    this.#sampler = sampler
  }

  /** The sampler may have taken a reading. */
  note(): void {
    const at = this.#sampler.readAt
    const last = this.#kept.at(-1)
    if (at === null || last?.at === at) return
    const { counters, known } = this.#sampler.lastInterval
    const before = last ?? { counters: ZERO_COUNTERS, knownUs: 0 }
    this.#kept.push({ at, counters: sumOf([before.counters, counters]), knownUs: before.knownUs + known })
    this.#forget(at)
  }

  window(): SeriesWindow | null {
    const to = this.#views.now()
    this.#forget(to)
    const [start, last] = [this.#kept[0], this.#kept.at(-1)]
    if (start === undefined || last === undefined || to - start.at < SHORTEST_MS) return null
    const { counters, known } = this.#sampler.sinceLast()
    return {
      from: start.at,
      to,
      counters: sumOf([differenceOf(last.counters, start.counters), counters]),
      knownUs: last.knownUs - start.knownUs + known,
    }
  }

  #forget(now: Instant): void {
    while (this.#kept[1] !== undefined && this.#kept[1].at <= now - WINDOW_MS) this.#kept.shift()
  }
}
