/** Who makes a request. */
import type { FastifyInstance } from 'fastify'
import type { Role } from '../../model/role.ts'

export interface Caller {
  /**
   * The name of the token: owner of the tasks it submits, author of the changes it makes. null: nobody has to
   * say who he is.
   */
  readonly name: string | null
  readonly role: Role
  /** null without a token. */
  readonly tokenId: string | null
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
  }
}

/** Where no token is configured only this machine is heard, and whoever is on it may do everything. */
const ANONYMOUS: Caller = { name: null, role: 'admin', tokenId: null }

export function prepareCallers(app: FastifyInstance): void {
  app.decorateRequest('caller', null)
}

export function callerOf(request: { readonly caller: Caller | null }): Caller {
  return request.caller ?? ANONYMOUS
}

/** Who wanted it, as events and reasons say it. */
export function signatureOf(request: { readonly caller: Caller | null }): string {
  return callerOf(request).name ?? 'api'
}
