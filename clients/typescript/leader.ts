import type { LeaderBody } from '../../controller/api/leader/schema.ts'
import type { CallOptions } from './simulations.ts'
import type { Transport } from './transport.ts'

export function leaderOf(transport: Transport) {
  return {
    /** The controllers of the store: the leader and the standbys. */
    get: ({ signal }: CallOptions = {}) =>
      transport.json<LeaderBody>({ method: 'GET', path: '/leader', signal }),
    /**
     * Asks the leader to hand over; it has when `get` has a higher epoch.
     * @param to name of the next leader; null: any standby
     */
    resign: ({ to = null, signal }: { readonly to?: string | null } & CallOptions = {}) =>
      transport.json<LeaderBody>({ method: 'POST', path: '/leader/resign', body: { to }, signal }),
  }
}
