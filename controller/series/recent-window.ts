/** The last minute: growth of the cluster's counters since a reading about a minute ago. */
import type { DurationMs, Instant, Microseconds } from '../../protocol/units.ts'
import type { Views } from '../query/views.ts'
import { differenceOf, type Counters } from '../metrics/counters.ts'
import { newInterval, sumOfIntervals, type Interval } from './interval.ts'
import type { Sampler } from './sampler.ts'

export interface SeriesWindow {
  readonly from: Instant
  readonly to: Instant
  /** Growth of the counters, for nodes that were heard. */
  readonly counters: Counters
  /** Time of the GPUs of those nodes. */
  readonly knownUs: Microseconds
}

const WINDOW_MS: DurationMs = 60_000
const SHORTEST_MS: DurationMs = 1_000

/** Totals since the first reading. */
interface Reading extends Interval {
  readonly at: Instant
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

  /** Call after the sampler may have taken a reading. */
  note(): void {
    const at = this.#sampler.readAt
    const last = this.#kept.at(-1)
    if (at === null || last?.at === at) return
    this.#kept.push({ at, ...sumOfIntervals(last ?? newInterval(), this.#sampler.lastInterval) })
    this.#forget(at)
  }

  window(): SeriesWindow | null {
    this.note()
    const to = this.#views.now()
    this.#forget(to)
    const [start, last] = [this.#kept[0], this.#kept.at(-1)]
    if (start === undefined || last === undefined || to - start.at < SHORTEST_MS) return null
    const kept = {
      counters: differenceOf(last.counters, start.counters),
      knownUs: last.knownUs - start.knownUs,
    }
    return { from: start.at, to, ...sumOfIntervals(kept, this.#sampler.sinceLast()) }
  }

  #forget(now: Instant): void {
    while (this.#kept[1] !== undefined && this.#kept[1].at <= now - WINDOW_MS) this.#kept.shift()
  }
}
