/**
 * Faults in a session. Hidden faults are for instructors, who have the role admin: no other route or role can
 * read them.
 */
import { mayCall } from '../../model/role.ts'
import type { SessionFault } from '../../ports/simulation.ts'
import { callerOf, type Caller } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { FaultBodySchema, FaultListSchema } from './session-schema.ts'
import { SimulationPathSchema } from './schema.ts'
import { ownSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const listFaults = operation(
  {
    operationId: 'listSessionFaults',
    role: 'viewer',
    summary: 'Faults of a session, from its scenario and injected',
    description: 'Hidden faults are visible only to admins.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: FaultListSchema },
  },
  ['not_found', 'conflict'],
)

const injectFault = operation(
  {
    operationId: 'injectSessionFault',
    role: 'submitter',
    summary: 'Inject a fault into a session now',
    description:
      'Visible faults require the owner of the session or the role operator, hidden faults the role ' +
      'admin.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    body: FaultBodySchema,
    response: { 200: FaultListSchema },
  },
  ['not_found', 'conflict'],
)

/** GET and POST /simulations/{simulation_id}/faults. */
export function sessionFaultRoutes(app: ApiApp, { simulation }: ApiContext): void {
  app.get('/simulations/:simulation_id/faults', { schema: listFaults }, async (request) =>
    shownTo(request, valueOf(await simulatorOf(simulation).faults(request.params.simulation_id))),
  )

  app.post('/simulations/:simulation_id/faults', { schema: injectFault }, async (request) => {
    const { fault, is_hidden: isHidden = false } = request.body
    const { name, role } = callerOf(request)
    const { id } = ownSimulation(simulatorOf(simulation), request.params.simulation_id, request)
    if (isHidden && !mayCall(role, 'admin'))
      throw new ApiProblem('forbidden', 'Permission denied: a hidden fault requires role `admin`.')
    return shownTo(request, valueOf(await simulatorOf(simulation).injectFault(id, fault, isHidden, name)))
  })
}

function shownTo(request: { readonly caller: Caller | null }, faults: readonly SessionFault[]) {
  const isInstructor = mayCall(callerOf(request).role, 'admin')
  const shown = faults.filter(({ isHidden }) => isInstructor || !isHidden)
  return {
    items: shown.map(({ atMs, isHidden, origin, by, fault }) => ({
      virtual_seconds: atMs / 1000,
      is_hidden: isHidden,
      origin,
      by,
      fault,
    })),
  }
}
