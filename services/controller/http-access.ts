/** Access to the REST interface: from settings and tokens, at the start of `headroom serve`. */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { createAccess, type Access } from '../../controller/api/auth/access.ts'
import type { SignIn } from '../../controller/api/auth/sign-in.ts'
import type { Controller } from '../../controller/controller.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { AdminToken } from './admin-token.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { StartFault } from '../exit-codes.ts'
import type { Settings } from '../settings/settings.ts'

export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost' || host.endsWith('.localhost')
  return host === '::1' || /^(?:::ffff:)?127\./.test(host)
}

/** @throws StartFault when other hosts could reach the interface without authentication */
export async function requireToken(
  { httpHost, oidc }: Settings,
  token: AdminToken | null,
  store: Store,
): Promise<void> {
  if (token !== null || oidc !== null || isLoopback(httpHost)) return
  const { tokens } = await store.load()
  if (tokens.length > 0) return
  throw new StartFault(
    `${ENVIRONMENT.httpHost.name} is ${JSON.stringify(httpHost)}, which other hosts can reach, and ` +
      'there is no token: ' +
      `set ${ENVIRONMENT.adminTokenFile.name} to a file with a secret (headroom token generate), make a ` +
      'token with headroom token create ' +
      '--data-dir, or listen on 127.0.0.1',
  )
}

export function httpAccess(
  settings: Settings,
  token: AdminToken | null,
  signIn: SignIn | null,
  { engine }: Controller,
): Access {
  const { httpHost, oidc, allowedHosts, requestsPerSecond, anonymousRequestsPerSecond } = settings
  const own = isLoopback(httpHost) ? [] : [hostname(), ...(isIP(httpHost) === 0 ? [httpHost] : [])]
  return createAccess({
    book: engine.access,
    now: Date.now,
    adminTokenHash: token?.hash ?? null,
    signIn,
    allowedHosts: [...allowedHosts, ...own, ...(oidc === null ? [] : [oidc.publicUrl.hostname])],
    requestsPerSecond,
    anonymousRequestsPerSecond,
  })
}
