import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { SummarySchema } from './summary-schema.ts'

const getSummary = operation({
  operationId: 'getSummary',
  role: 'viewer',
  summary: 'Cluster summary: tasks, VRAM, utilization and starvation',
  description:
    'Counts and sums of the whole cluster at one instant. Percentages are null while no GPU time has passed.',
  tags: ['summary'],
  response: { 200: SummarySchema },
})

/** GET /summary. */
export function summaryRoutes(app: ApiApp, { summary }: ApiContext): void {
  app.get('/summary', { schema: getSummary }, () => summary.asked())
}
