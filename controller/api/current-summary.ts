import type { ApiContext } from './context.ts'
import { createPendingReasons } from './pending-reasons.ts'
import { presentSummary } from './present/summary.ts'
import type { SummaryBody } from './schema/summary.ts'

/** The summary as it is at each call, for whoever asks and for those who follow. */
export function createSummary({ views, fleet, series }: Pick<ApiContext, 'views' | 'fleet' | 'series'>): () => SummaryBody {
  const pendingReasons = createPendingReasons(views)
  return () => {
    series.take()
    return presentSummary({ views, fleet, window: series.lastMinute(), pendingByReason: pendingReasons() })
  }
}
