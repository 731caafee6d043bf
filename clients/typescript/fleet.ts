import type { CapabilitiesBody } from '../../controller/api/auth/capability-schema.ts'
import type { GpuListBody, GpuQuery } from '../../controller/api/gpus/schema.ts'
import type { OwnerListBody, OwnerQuery } from '../../controller/api/owners/schema.ts'
import type { CallOptions } from './simulations.ts'
import type { Transport } from './transport.ts'

export function fleetOf(transport: Transport) {
  return {
    /** GPUs in columnar form, with their figures of the last minute and hour; up to 10,000 in one answer. */
    gpus: ({ signal, ...query }: Omit<GpuQuery, 'format'> & CallOptions = {}) =>
      transport.json<GpuListBody>({ method: 'GET', path: '/gpus', query, signal }),
    /** Returns the usage, waits and starvation of the open tasks, by owner. */
    owners: ({ signal, ...query }: Omit<OwnerQuery, 'format'> & CallOptions = {}) =>
      transport.json<OwnerListBody>({ method: 'GET', path: '/owners', query, signal }),
    /** Returns the capabilities of this controller and of the caller. */
    capabilities: ({ signal }: CallOptions = {}) =>
      transport.json<CapabilitiesBody>({ method: 'GET', path: '/capabilities', signal }),
  }
}
