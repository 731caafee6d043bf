import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../operation.ts'
import { createPendingReasons } from '../pending-reasons.ts'
import { presentSummary } from '../present/summary.ts'
import { SummarySchema } from '../schema/summary.ts'

const getSummary = operation({
  operationId: 'getSummary',
  role: 'viewer',
  summary: 'The cluster on one page: tasks, VRAM, utilization and starvation',
  tags: ['summary'],
  response: { 200: SummarySchema },
})

/** GET /summary. */
export function summaryRoutes(app: ApiApp, { views, fleet, series }: ApiContext): void {
  const pendingReasons = createPendingReasons(views)
  app.get('/summary', { schema: getSummary }, () => {
    series.take()
    return presentSummary({ views, fleet, window: series.lastMinute(), pendingByReason: pendingReasons() })
  })
}
