import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../errors.ts'
import { operation } from '../operation.ts'
import { presentDrift } from '../present/twin.ts'
import { TwinSchema } from '../schema/twin.ts'

const getTwin = operation(
  {
    operationId: 'getTwin',
    role: 'viewer',
    summary: 'How well the twin foretells what the cluster does',
    description:
      'Every ten minutes the live state is run on, and compared with what came. On a twin that drifts no forecast is given: neither of starts nor of a change.',
    tags: ['summary'],
    response: { 200: TwinSchema },
  },
  ['conflict'],
)

/** GET /twin. */
export function twinRoutes(app: ApiApp, { twin }: ApiContext): void {
  app.get('/twin', { schema: getTwin }, () => {
    if (twin === null) throw new ApiProblem('conflict', 'This is a simulated world: nothing runs it on.')
    return presentDrift(twin.drift())
  })
}
