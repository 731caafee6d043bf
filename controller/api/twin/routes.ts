import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentTwin } from './present.ts'
import { TwinSchema } from './schema.ts'

const getTwin = operation(
  {
    operationId: 'getTwin',
    role: 'viewer',
    summary: 'Forecast accuracy of the twin, and the swap and start speeds that it has learned',
    description:
      'Every ten minutes, the twin simulates the live state and compares the result with the actual ' +
      'course of the cluster. While the twin drifts, no forecasts are available.',
    tags: ['summary'],
    response: { 200: TwinSchema },
  },
  ['conflict'],
)

/** GET /twin. */
export function twinRoutes(app: ApiApp, { twin }: ApiContext): void {
  app.get('/twin', { schema: getTwin }, () => {
    if (twin === null) throw new ApiProblem('conflict', 'A simulated cluster has no twin.')
    return presentTwin(twin.drift(), twin.speeds())
  })
}
