/** Storage used by the caller, and its limits. */
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { UsageSchema } from './usage-schema.ts'
import { simulatorOf } from './simulation-request.ts'

const getUsage = operation(
  {
    operationId: 'getUsage',
    role: 'viewer',
    summary: 'Storage used by your uploads, and its limits',
    description: 'Delete your uploads with `DELETE /traces/{trace}` and `DELETE /scenarios/{scenario}`.',
    tags: ['simulations'],
    response: { 200: UsageSchema },
  },
  ['conflict', 'store_failed'],
)

/** GET /usage. */
export function usageRoutes(app: ApiApp, { simulation }: ApiContext): void {
  app.get('/usage', { schema: getUsage }, async (request) => {
    const { name: owner } = callerOf(request)
    const usage = await simulatorOf(simulation).usage(owner)
    const { traces, scenarios, bytes } = usage
    const limits = {
      limit_bytes: usage.maxBytes,
      total_bytes: usage.totalBytes,
      total_limit_bytes: usage.totalMaxBytes,
    }
    return { owner, uploads: { traces, scenarios, bytes, ...limits } }
  })
}
