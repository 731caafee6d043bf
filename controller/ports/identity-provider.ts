/**
 * An OpenID Connect provider that authenticates people (OpenID Connect Core 1.0, authorization code flow with
 * PKCE).
 */

/** State to keep from the redirect to the provider until the browser returns. */
export interface SignInChecks {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** From the ID token, verified: issuer, audience, signature, nonce and times. */
export type Claims = Readonly<Record<string, unknown>>

export interface SignedIn {
  /** From the ID token, and from UserInfo if it was queried; the ID token takes precedence. */
  readonly claims: Claims
  /** Sources of the claims, for the log: `the ID token and UserInfo`. */
  readonly lookedIn: string
}

export interface IdentityProvider {
  /** Display name: the host of the issuer. */
  readonly name: string
  /**
   * Returns the URL to redirect the browser to. Rejects with ProviderFault if the provider's metadata cannot
   * be read.
   */
  begin(): Promise<{ readonly url: string; readonly checks: SignInChecks }>
  /**
   * Reads UserInfo (OpenID Connect Core 1.0, 5.3) if the ID token lacks one of `needed`: by 5.4 a provider
   * need not put claims into the token.
   * @param query of the request with which the browser returned
   * @param needed paths of claims, as `claimAt` reads them. Rejects with ProviderFault: `denied` if the
   * person or the provider refused or the answer does not match the request, `unreachable` if the provider
   * could not be queried.
   */
  finish(query: URLSearchParams, checks: SignInChecks, needed: readonly string[]): Promise<SignedIn>
}

export class ProviderFault extends Error {
  override readonly name = 'ProviderFault'
  readonly kind: 'denied' | 'unreachable'

  constructor(kind: 'denied' | 'unreachable', message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}
