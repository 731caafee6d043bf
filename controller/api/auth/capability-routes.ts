/** Capabilities of this controller and of the caller, so that a page need not try requests. */
import type { RouteOptions } from 'fastify'
import { mayCall, type Role } from '../../model/role.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { accessOf, operation } from '../http/operation.ts'
import { callerOf } from './caller.ts'
import { CapabilitiesSchema, type CapabilitiesBody } from './capability-schema.ts'

const getCapabilities = operation({
  operationId: 'getCapabilities',
  role: 'viewer',
  summary: 'Features of this controller and permissions of the caller',
  description:
    'Returns the features of this controller and the operations that the role of the caller permits. A ' +
    'permitted request can still be refused because of its content or the current state.',
  tags: ['access'],
  response: { 200: CapabilitiesSchema },
})

interface Operation {
  readonly id: string
  readonly access: ReturnType<typeof accessOf>
}

/** GET /capabilities. Register it before the routes that it lists. */
export function capabilityRoutes(app: ApiApp, api: ApiContext): void {
  const operations: Operation[] = []
  app.addHook('onRoute', (route) => {
    if (isListed(route))
      operations.push({ id: operationIdOf(route) as string, access: accessOf(route as never) })
  })
  app.get('/capabilities', { schema: getCapabilities }, (request) => {
    const { name, role } = callerOf(request)
    const permitted = operations.filter(
      ({ access }) => access.role === 'public' || mayCall(role, access.role),
    )
    return {
      fleet: api.fleet,
      features: featuresOf(api),
      caller: { name, role },
      operations: permitted.map(({ id }) => id),
      own_tasks_only: permitted.filter(({ access }) => isOwnOnly(access, role)).map(({ id }) => id),
    }
  })
}

function isListed(route: RouteOptions): boolean {
  return operationIdOf(route) !== undefined && [route.method].flat().some((method) => method !== 'HEAD')
}

function operationIdOf({ schema }: RouteOptions): string | undefined {
  return (schema as { operationId?: string } | undefined)?.operationId
}

function featuresOf({ access, simulation, twin, logs, waits }: ApiContext): CapabilitiesBody['features'] {
  return {
    simulations: simulation !== null,
    forecasts: twin !== null,
    task_output: logs !== null,
    secrets: access.sealer !== null,
    tokens: access.book !== null,
    waiting: waits !== null,
  }
}

/** Uses the same rule as the gate (gate.ts). */
function isOwnOnly({ ownersOnly }: Operation['access'], role: Role): boolean {
  return ownersOnly === 'or_admin' ? role !== 'admin' : ownersOnly && role === 'submitter'
}
