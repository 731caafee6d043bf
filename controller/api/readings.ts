/** A short memory of the cluster's counters, so that percentages can be said of about the last minute. */
import type { Instant } from '../../protocol/units.ts'
import type { Views } from '../engine/views.ts'
import { differenceOf, type Counters } from '../metrics/counters.ts'

export interface ReadingWindow {
  readonly from: Instant
  readonly to: Instant
  /** What the counters grew by. */
  readonly counters: Counters
}

export interface Readings {
  /** Remembers the counters as they are now; less than MIN_SPACING_MS after the last time it does nothing. */
  take(): void
  /** From the reading WINDOW_MS ago, or the oldest there is, until now; null when that is less than MIN_SPACING_MS. */
  window(): ReadingWindow | null
}

const MIN_SPACING_MS = 1_000
const WINDOW_MS = 60_000

interface Reading {
  readonly at: Instant
  readonly counters: Counters
}

export function createReadings(views: Views): Readings {
  /** Oldest first. At most one is older than the window, so there are at most WINDOW_MS / MIN_SPACING_MS + 1. */
  const kept: Reading[] = []

  function forget(now: Instant): void {
    while (kept[1] !== undefined && kept[1].at <= now - WINDOW_MS) kept.shift()
  }

  return {
    take() {
      const at = views.now()
      const last = kept.at(-1)
      if (last !== undefined && at - last.at < MIN_SPACING_MS) return
      kept.push({ at, counters: { ...views.clusterCounters() } })
      forget(at)
    },
    window() {
      const to = views.now()
      forget(to)
      const start = kept[0]
      if (start === undefined || to - start.at < MIN_SPACING_MS) return null
      return { from: start.at, to, counters: differenceOf(views.clusterCounters(), start.counters) }
    },
  }
}
