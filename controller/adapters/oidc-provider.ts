/** An OpenID Connect provider, asked with openid-client. What it says of itself is read when it is first needed, and again after a failure. */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  discovery,
  enableNonRepudiationChecks,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  ResponseBodyError,
  type Configuration,
} from 'openid-client'
import type { Claims, IdentityProvider, SignInChecks } from '../ports/identity-provider.ts'
import { ProviderFault } from '../ports/identity-provider.ts'

export interface OidcOptions {
  readonly issuer: URL
  readonly clientId: string
  /** null: a public client, protected by PKCE alone. */
  readonly clientSecret: string | null
  /** Where the browser comes back to; registered at the provider. */
  readonly redirectUrl: URL
  readonly scope: string
}

/** The provider must answer within this. */
const TIMEOUT_SECONDS = 10

export function createOidcProvider({ issuer, clientId, clientSecret, redirectUrl, scope }: OidcOptions): IdentityProvider {
  let known: Promise<Configuration> | null = null

  const configuration = (): Promise<Configuration> => {
    known ??= discovery(issuer, clientId, undefined, clientSecret === null ? None() : ClientSecretPost(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      // Settings take an issuer without TLS on this host only. Signatures are checked, although the token comes from the provider itself.
      execute: [enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : [])],
    }).catch((error: unknown) => {
      known = null
      throw new ProviderFault('unreachable', `${issuer.host} does not say how it is asked: ${wordsOf(error)}`, { cause: error })
    })
    return known
  }

  return {
    name: issuer.host,
    async begin() {
      const config = await configuration()
      const checks: SignInChecks = { state: randomState(), nonce: randomNonce(), codeVerifier: randomPKCECodeVerifier() }
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
    async finish(query, { state, nonce, codeVerifier }) {
      const config = await configuration()
      const cameBackTo = new URL(`${redirectUrl.href}?${query.toString()}`)
      try {
        const tokens = await authorizationCodeGrant(config, cameBackTo, {
          pkceCodeVerifier: codeVerifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        })
        return tokens.claims() as Claims
      } catch (error) {
        throw new ProviderFault(isUnreachable(error) ? 'unreachable' : 'denied', `${issuer.host}: ${wordsOf(error)}`, { cause: error })
      }
    },
  }
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) return false
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError')
}

/** Never what was sent: a code or a secret may be in it. */
function wordsOf(error: unknown): string {
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    return [error.error, error.error_description].filter((part) => part !== undefined).join(': ')
  }
  const code = error instanceof Error ? (error as { readonly code?: unknown }).code : undefined
  const message = error instanceof Error ? error.message : 'it failed'
  return typeof code === 'string' ? `${message} (${code})` : message
}
