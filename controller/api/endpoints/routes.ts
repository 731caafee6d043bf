import { TaskPathSchema } from '../tasks/schema.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { portAddresses } from '../tasks/port-addresses.ts'
import { readWait, whenClosed } from '../tasks/task-waits.ts'
import { EndpointTable, servedPort } from './endpoint-table.ts'
import { EndpointAddressSchema, EndpointsQuerySchema, EndpointsSchema } from './schema.ts'

const listEndpoints = operation(
  {
    operationId: 'listEndpoints',
    role: 'gateway',
    summary: 'Tasks that serve HTTP, and tokens for them',
    description:
      'Returns the routing table for `headroom gateway`. Tokens are represented by their SHA-256, from ' +
      'which they cannot be derived.',
    tags: ['service'],
    querystring: EndpointsQuerySchema,
    response: { 200: EndpointsSchema },
  },
  ['too_many_streams'],
)

const getEndpointAddress = operation(
  {
    operationId: 'getEndpointAddress',
    role: 'gateway',
    summary: 'Address of the HTTP port of a placed task',
    description:
      'Requests the address from the GPU server of the task. Returns 404 if the task is not placed or ' +
      'declares no http port.',
    tags: ['service'],
    params: TaskPathSchema,
    response: { 200: EndpointAddressSchema },
  },
  ['not_found'],
)

/** GET /endpoints and /endpoints/{task_id}/address. */
export function endpointRoutes(app: ApiApp, { access, events, views, waits, logs }: ApiContext): void {
  const endpoints = new EndpointTable({ views, source: events, access, mayWait: waits !== null })
  app.addHook('preClose', (done) => {
    endpoints.close()
    done()
  })

  app.get('/endpoints', { schema: listEndpoints }, ({ query: { wait = '0s', seen } }, reply) =>
    endpoints.read(seen, readWait(wait), whenClosed(reply.raw)),
  )

  app.get('/endpoints/:task_id/address', { schema: getEndpointAddress }, async ({ params }) => {
    const placement = views.openTask(params.task_id)?.placement ?? null
    const served = placement === null ? null : servedPort(placement.task.spec)
    if (placement === null || served === null) throw notFound('task', params.task_id)
    const { attempt } = placement
    const port = (await portAddresses(placement, logs)).find(({ name }) => name === served.name)
    return {
      task_id: params.task_id,
      attempt,
      address: port?.address ?? null,
      detail: port?.detail ?? null,
    }
  })
}
