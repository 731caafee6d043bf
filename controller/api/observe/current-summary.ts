import type { Views } from '../../query/views.ts'
import type { Series } from '../../series/series.ts'
import type { PendingByReason } from './pending-reasons.ts'
import { presentSummary } from './present-summary.ts'
import { EndsOfTheHour, type RecentEnds } from './recent-ends.ts'
import type { SummaryBody } from './summary-schema.ts'
import { createYesterday } from './trends.ts'

export interface CurrentSummary {
  /** Returns the summary for followers: figures of the store may be some seconds old. */
  now(): SummaryBody
  /** Returns the summary for a request: reads the store first. */
  asked(): Promise<SummaryBody>
}

interface Sources {
  readonly views: Views
  readonly fleet: 'simulated' | 'live'
  readonly series: Series
  readonly brokerUrls: readonly string[]
  readonly pendingReasons: () => PendingByReason
  /** null: this controller has no standby. */
  readonly controllers: () => SummaryBody['controllers']
}

/** The summary as it is at each call. */
export function createSummary(sources: Sources): CurrentSummary {
  const { views, fleet, series, brokerUrls, pendingReasons } = sources
  const ends = new EndsOfTheHour(views)
  const yesterday = createYesterday(series)
  const present = (recentEnds: RecentEnds | null): SummaryBody => {
    series.take()
    return presentSummary({
      views,
      fleet,
      brokerUrls,
      window: series.lastMinute(),
      pendingByReason: pendingReasons(),
      yesterday: yesterday(views.now()),
      controllers: sources.controllers(),
      recentEnds,
    })
  }
  return { now: () => present(ends.latest()), asked: async () => present(await ends.current()) }
}
