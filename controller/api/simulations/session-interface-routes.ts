/**
 * The REST API of the controller inside a session, below the session id, so that pages can show a simulated
 * cluster like the live one. Requests and responses, including streams, pass unchanged. The live cluster
 * is not reachable this way.
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import { mayCall, type Role } from '../../model/role.ts'
import type { ForwardedRequest, Simulation } from '../../ports/simulation.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { BODY_LIMIT_BYTES } from '../http/limits.ts'
import { forwarded, operation } from '../http/operation.ts'
import { ForwardedSchema } from './session-schema.ts'
import { SimulationPathSchema } from './schema.ts'
import { ownSimulation, noSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Request headers that are forwarded. */
const PASSED_ON = [
  'content-type',
  'content-encoding',
  'if-match',
  'if-none-match',
  'idempotency-key',
  'last-event-id',
  'accept',
]
/** Response headers that are not forwarded, because they belong to the other connection. */
const KEPT_BACK = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'date',
  'x-request-id',
])

export function sessionInterfaceRoutes(app: ApiApp, { simulation }: ApiContext): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      '*',
      { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES },
      (_request, body, done) => done(null, body),
    )
    const handler = forward(() => simulatorOf(simulation))
    for (const method of METHODS) {
      const route = {
        method,
        url: '/simulations/:simulation_id/api/v1/*',
        schema: schemaOf(method),
        exposeHeadRoute: false,
        handler,
      }
      scope.route(route as never)
    }
  })
}

function schemaOf(method: (typeof METHODS)[number]) {
  return forwarded(
    operation(
      {
        operationId: `${method.toLowerCase()}InSession`,
        role: method === 'GET' ? 'viewer' : 'submitter',
        summary: `${method} request to the REST API of the controller in a session`,
        description:
          'Routes, roles and responses are the same as in the REST API of the live controller. The owner ' +
          'of the session has at least the role `operator` in it.',
        tags: ['simulations'],
        params: SimulationPathSchema,
        querystring: {},
        response: { 200: ForwardedSchema },
      },
      ['not_found', 'conflict', 'route_not_found'],
    ),
  )
}

function forward(simulator: () => Simulation): RouteHandlerMethod {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const { simulation_id: id } = request.params as { readonly simulation_id: string }
    const asked = requestOf(request, roleIn(simulator(), id, request))
    const { status, headers, body } = valueOf(await simulator().ask(id, asked))
    for (const [name, value] of Object.entries(headers)) if (!KEPT_BACK.has(name)) reply.header(name, value)
    return reply.code(status).send(Readable.from(body, { objectMode: false }))
  }
}

/**
 * The owner of a session is its operator; other callers keep their role, and changes require operator.
 */
function roleIn(simulation: Simulation, id: string, request: FastifyRequest): Role {
  const { name, role } = callerOf(request)
  const record = simulation.get(id)
  if (record === undefined) throw noSimulation(id)
  if (request.method !== 'GET') ownSimulation(simulation, id, request)
  const isOwn = record.createdBy === name && mayCall(role, 'submitter')
  return isOwn && !mayCall(role, 'operator') ? 'operator' : role
}

function requestOf(request: FastifyRequest, role: Role): ForwardedRequest {
  const { raw, method, headers, body } = request
  const prefix = raw.url?.indexOf('/api/v1/', '/api/v1/'.length) ?? 0
  const passed = PASSED_ON.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, String(headers[name])]],
  )
  return {
    method,
    path: (raw.url ?? '').slice(prefix),
    headers: Object.fromEntries(passed) as Record<string, string>,
    body: Buffer.isBuffer(body) && body.length > 0 ? body : null,
    by: callerOf(request).name,
    role,
  }
}
