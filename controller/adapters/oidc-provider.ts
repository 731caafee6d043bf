/**
 * An OpenID Connect provider, through openid-client. Its metadata is read on first use, and again after a
 * failure.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientError,
  ClientSecretPost,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  ResponseBodyError,
  type Configuration,
} from 'openid-client'
import { claimAt } from '../model/role-claims.ts'
import type { Claims, IdentityProvider, SignedIn, SignInChecks } from '../ports/identity-provider.ts'
import { ProviderFault } from '../ports/identity-provider.ts'

export interface OidcOptions {
  readonly issuer: URL
  readonly clientId: string
  /** Null: a public client, protected by PKCE alone. */
  readonly clientSecret: string | null
  /** The redirect URL; registered at the provider. */
  readonly redirectUrl: URL
  readonly scope: string
}

/** Timeout of requests to the provider. */
const TIMEOUT_SECONDS = 10

export function createOidcProvider({
  issuer,
  clientId,
  clientSecret,
  redirectUrl,
  scope,
}: OidcOptions): IdentityProvider {
  let known: Promise<Configuration> | null = null

  const configuration = (): Promise<Configuration> => {
    known ??= discovery(
      issuer,
      clientId,
      undefined,
      clientSecret === null ? None() : ClientSecretPost(clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        // Settings allow an issuer without TLS on this host only. Signatures are checked, although the token
        // comes from the provider itself.
        execute: [
          enableNonRepudiationChecks,
          ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : []),
        ],
      },
    ).catch((error: unknown) => {
      known = null
      throw new ProviderFault(
        'unreachable',
        `the OpenID configuration of ${issuer.host} cannot be read: ${wordsOf(error)}`,
        { cause: error },
      )
    })
    return known
  }

  return {
    name: issuer.host,
    async begin() {
      const config = await configuration()
      const checks: SignInChecks = {
        state: randomState(),
        nonce: randomNonce(),
        codeVerifier: randomPKCECodeVerifier(),
      }
      const url = buildAuthorizationUrl(config, {
        redirect_uri: redirectUrl.href,
        scope,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await calculatePKCECodeChallenge(checks.codeVerifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, checks }
    },
    async finish(query, { state, nonce, codeVerifier }, needed) {
      const config = await configuration()
      const cameBackTo = new URL(`${redirectUrl.href}?${query.toString()}`)
      try {
        const tokens = await authorizationCodeGrant(config, cameBackTo, {
          pkceCodeVerifier: codeVerifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        })
        const idToken = tokens.claims() as Claims & { readonly sub: string }
        if (needed.every((path) => claimAt(idToken, path) !== undefined))
          return { claims: idToken, lookedIn: 'the ID token' }
        return await withUserInfo(config, idToken, tokens.access_token)
      } catch (error) {
        if (error instanceof ProviderFault) throw error
        throw new ProviderFault(
          isUnreachable(error) ? 'unreachable' : 'denied',
          `${issuer.host}: ${wordsOf(error)}`,
          { cause: error },
        )
      }
    },
  }
}

/** @throws ProviderFault, `denied` if UserInfo has another subject than the ID token */
async function withUserInfo(
  config: Configuration,
  idToken: Claims & { readonly sub: string },
  accessToken: string,
): Promise<SignedIn> {
  const { issuer, userinfo_endpoint: endpoint } = config.serverMetadata()
  if (endpoint === undefined)
    return { claims: idToken, lookedIn: 'the ID token: the provider has no UserInfo' }
  const { host } = new URL(issuer)
  const userInfo = await fetchUserInfo(config, accessToken, idToken.sub).catch((error: unknown) => {
    const kind = isUnreachable(error) || isServerFault(error) ? 'unreachable' : 'denied'
    throw new ProviderFault(kind, `${host}: UserInfo: ${wordsOf(error)}`, { cause: error })
  })
  return { claims: mergedClaims(idToken, userInfo), lookedIn: 'the ID token and UserInfo' }
}

/** The first takes precedence; objects are merged, so that a path may lead through both. */
function mergedClaims(first: Claims, second: Claims): Claims {
  const merged = Object.entries(first).map(([name, value]): [string, unknown] => {
    const other = Object.hasOwn(second, name) ? second[name] : undefined
    return [name, isClaims(value) && isClaims(other) ? mergedClaims(value, other) : value]
  })
  return { ...second, ...Object.fromEntries(merged) }
}

function isClaims(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isServerFault(error: unknown): boolean {
  return error instanceof ClientError && error.cause instanceof Response && error.cause.status >= 500
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) return false
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError')
}

/** Omits what was sent: it may contain a code or a secret. */
function wordsOf(error: unknown): string {
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    return [error.error, error.error_description].filter((part) => part !== undefined).join(': ')
  }
  const code = error instanceof Error ? (error as { readonly code?: unknown }).code : undefined
  const message = error instanceof Error ? error.message : 'it failed'
  return typeof code === 'string' ? `${message} (${code})` : message
}
