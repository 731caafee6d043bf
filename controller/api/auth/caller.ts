/** The caller of a request. */
import type { FastifyInstance } from 'fastify'
import type { Role } from '../../model/role.ts'

export interface Caller {
  /** The name of the token: owner of its tasks, author of its changes. null: authentication is off. */
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

/** Without any token, only this machine is admitted, with all permissions. */
const ANONYMOUS: Caller = { name: null, role: 'admin', tokenId: null }

export function prepareCallers(app: FastifyInstance): void {
  app.decorateRequest('caller', null)
}

export function callerOf(request: { readonly caller: Caller | null }): Caller {
  return request.caller ?? ANONYMOUS
}

/** The name in events and reasons. */
export function signatureOf(request: { readonly caller: Caller | null }): string {
  return callerOf(request).name ?? 'api'
}
