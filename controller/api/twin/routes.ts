import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentTwin } from './present.ts'
import { TwinSchema } from './schema.ts'

const getTwin = operation(
  {
    operationId: 'getTwin',
    role: 'viewer',
    summary: 'Accuracy of the forecasts of the twin, and the speeds that it learned',
    description:
      'Every ten minutes the twin simulates the live state and compares the result with the actual ' +
      'course. While the twin drifts, no forecasts are given.',
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
