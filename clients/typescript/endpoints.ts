/** The request of a gateway: GET /endpoints. */
import type {
  EndpointAddressBody,
  EndpointsBody,
  EndpointsQuery,
} from '../../controller/api/endpoints/schema.ts'
import type { CallOptions } from './simulations.ts'
import { pathSegment, type Transport } from './transport.ts'

export type { EndpointAddressBody as EndpointAddress, EndpointsBody as Endpoints }

export function endpointsOf(transport: Transport) {
  return {
    /** With `seen` and `wait` (at most 60s) it resolves when the revision differs, or after that time. */
    list: ({ signal, ...query }: EndpointsQuery & CallOptions = {}) =>
      transport.json<EndpointsBody>({ method: 'GET', path: '/endpoints', query, signal }),
    address: (taskId: string, { signal }: CallOptions = {}) =>
      transport.json<EndpointAddressBody>({
        method: 'GET',
        path: `/endpoints/${pathSegment(taskId)}/address`,
        signal,
      }),
  }
}
