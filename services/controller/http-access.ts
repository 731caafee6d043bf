/** Access to the REST API: from settings and tokens, at the start of `headroom serve`. */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { createOidcProvider } from '../../controller/adapters/oidc-provider.ts'
import { createAccess, type Access, type SignInOf } from '../../controller/api/auth/access.ts'
import type { Peers } from '../../controller/api/auth/authenticator.ts'
import { Sessions } from '../../controller/api/auth/sessions.ts'
import { SignIn } from '../../controller/api/auth/sign-in.ts'
import {
  SECRET_MAX_CHARACTERS,
  SECRET_MIN_CHARACTERS,
  hashOf,
} from '../../controller/api/auth/token-secrets.ts'
import type { Controller } from '../../controller/controller.ts'
import type { Sealer } from '../../controller/ports/sealer.ts'
import type { Store } from '../../controller/ports/store.ts'
import { StartFault } from '../exit-codes.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { readSecretFile, SettingsError, type OidcSettings, type Settings } from '../settings/settings.ts'

function isLoopback(host: string): boolean {
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
  if (await hasTokens(store)) return
  throw new StartFault(
    `${ENVIRONMENT.httpHost.name} is ${JSON.stringify(httpHost)}, which other hosts can reach, and ` +
      'there is no token: ' +
      `set ${ENVIRONMENT.adminTokenFile.name} to a file with a secret (headroom token generate), create a ` +
      'token with headroom token create ' +
      '--data-dir, or listen on 127.0.0.1',
  )
}

/** @throws StartFault for a TCP port of `headroom gpu-server --standalone` that no token protects */
export async function requireTokenForTcp(
  { oidc }: Settings,
  token: AdminToken | null,
  store: Store,
): Promise<void> {
  if (token !== null || oidc !== null || (await hasTokens(store))) return
  throw new StartFault(
    `${ENVIRONMENT.httpPort.name} is set and there is no token: set ${ENVIRONMENT.adminTokenFile.name} ` +
      'to a file with a secret (headroom token generate), or unset the port to use the socket only',
  )
}

/** Sessions of browsers protect nothing. */
async function hasTokens(store: Store): Promise<boolean> {
  return (await store.load()).tokens.some(({ session }) => session === undefined)
}

export function httpAccess(
  settings: Settings,
  token: AdminToken | null,
  signIn: SignInOf | null,
  { access }: Controller,
  sealer: Sealer,
  peers: Peers | null,
): Access {
  const { httpHost, oidc, allowedHosts, requestsPerSecond, anonymousRequestsPerSecond } = settings
  const own = isLoopback(httpHost) ? [] : [hostname(), ...(isIP(httpHost) === 0 ? [httpHost] : [])]
  return createAccess({
    book: access,
    sealer,
    now: Date.now,
    adminTokenHash: token?.hash ?? null,
    signIn,
    peers,
    allowedHosts: [...allowedHosts, ...own, ...(oidc === null ? [] : [oidc.publicUrl.hostname])],
    requestsPerSecond,
    anonymousRequestsPerSecond,
  })
}

const HOUR_MS = 3_600_000
const FINGERPRINT_CHARACTERS = 16
const CALLBACK_PATH = '/api/v1/auth/callback'
const SECRET = /^[\x21-\x7e]{1,512}$/

/**
 * @throws SettingsError for an unreadable secret. The provider is contacted at the first sign-in: it need not
 * be available before.
 */
export function browserSignIn(oidc: OidcSettings): SignInOf {
  const { issuer, clientId, clientSecretFile, publicUrl, scope, rules, sessionHours } = oidc
  const clientSecret = clientSecretFile === null ? null : clientSecretIn(clientSecretFile)
  const provider = createOidcProvider({
    issuer,
    clientId,
    clientSecret,
    redirectUrl: new URL(CALLBACK_PATH, publicUrl),
    scope,
  })
  const [now, lifetimeMs, settings] = [Date.now, sessionHours * HOUR_MS, fingerprintOf(oidc)]
  const isSecure = publicUrl.protocol === 'https:'
  return (book) =>
    new SignIn({
      provider,
      rules,
      sessions: new Sessions({ book, now, lifetimeMs, settings }),
      now,
      isSecure,
    })
}

/** Returns a fingerprint of the settings that determine roles and the length of sessions. */
function fingerprintOf({ issuer, clientId, rules, sessionHours }: OidcSettings): string {
  return hashOf(JSON.stringify([issuer, clientId, rules, sessionHours])).slice(0, FINGERPRINT_CHARACTERS)
}

function clientSecretIn(path: string): string {
  const variable = ENVIRONMENT.oidcClientSecretFile
  const secret = readSecretFile(path, variable).text.trim()
  if (!SECRET.test(secret))
    throw new SettingsError(variable.name, path, `${variable.range} (it contains none)`)
  return secret
}

/**
 * The first admin token of a container: a secret in a file, named by CONTROLLER_ADMIN_TOKEN_FILE and read
 * once, at the start.
 */

interface AdminToken {
  readonly hash: string
  /** A problem with the file that does not prevent its use; null: none. */
  readonly warning: string | null
}

const { name: VARIABLE, range: RANGE } = ENVIRONMENT.adminTokenFile
const READABLE_BY_ALL = 0o004

/**
 * Null when the variable is not set.
 * @throws SettingsError, one line that names the variable without the content of the file, when the file is
 * unreadable or holds no valid secret
 */
export function adminToken(env: Readonly<Record<string, string | undefined>>): AdminToken | null {
  const path = env[VARIABLE]
  if (path === undefined || path === '') return null
  const { text, mode } = readSecretFile(path, ENVIRONMENT.adminTokenFile)
  const secret = text.trim()
  const why = whyNoSecret(secret)
  if (why !== null) throw new SettingsError(VARIABLE, path, `${RANGE} (${why})`)
  const isOpen = (mode & READABLE_BY_ALL) !== 0
  const shown = (mode & 0o777).toString(8).padStart(4, '0')
  return {
    hash: hashOf(secret),
    warning: isOpen ? `every user of this host may read ${path} (mode ${shown}): chmod o-r ${path}` : null,
  }
}

function whyNoSecret(secret: string): string | null {
  if (!/^[\x21-\x7e]*$/.test(secret)) return 'it contains spaces, line breaks or non-ASCII characters'
  if (secret.length < SECRET_MIN_CHARACTERS) return `it has ${secret.length} characters`
  return secret.length > SECRET_MAX_CHARACTERS ? 'it is longer' : null
}
