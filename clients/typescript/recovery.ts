import type { RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import type { CallOptions } from './simulations.ts'
import type { Transport } from './transport.ts'

export function recoveryOf(transport: Transport) {
  return {
    get: ({ signal }: CallOptions = {}) =>
      transport.json<RecoveryBody>({ method: 'GET', path: '/recovery', signal }),
    /** Resumes placements although nodes have not reported. */
    finish: ({ signal }: CallOptions = {}) =>
      transport.json<RecoveryBody>({ method: 'POST', path: '/recovery/finish', signal }),
  }
}
