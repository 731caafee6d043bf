import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { EXPOSITION_TYPE } from './exposition.ts'
import { MetricsSchema } from '../http/service-schema.ts'

/** GET /metrics, at the root and under /api/v1; `suffix` distinguishes the operation ids. */
export function metricsRoutes(app: ApiApp, { metrics }: ApiContext, suffix: string): void {
  const getMetrics = operation({
    operationId: `metrics${suffix}`,
    role: 'metrics',
    summary: 'Metrics for Prometheus',
    description: 'Text format 0.0.4; docs/metrics.md describes each metric.',
    tags: ['service'],
    response: { 200: MetricsSchema },
  })
  app.get('/metrics', { schema: getMetrics }, (_request, reply) => {
    void reply.type(EXPOSITION_TYPE)
    return metrics.text()
  })
}
