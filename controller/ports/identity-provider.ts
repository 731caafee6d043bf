/**
 * Somebody else who says who a person is: an OpenID Connect provider (OpenID Connect Core 1.0, authorization
 * code flow with PKCE).
 */

/** What has to be remembered from the redirect to the provider until the browser comes back. */
export interface SignInChecks {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** Of the ID token, verified: issuer, audience, signature, nonce and times are as they must be. */
export type Claims = Readonly<Record<string, unknown>>

export interface SignedIn {
  /** Of the ID token, and of UserInfo where it was asked; where both have a claim, the ID token's. */
  readonly claims: Claims
  /** Where claims were looked for, for the log: `the ID token and UserInfo`. */
  readonly lookedIn: string
}

export interface IdentityProvider {
  /** As people know it: the host of the issuer. */
  readonly name: string
  /** Where to send the browser. Rejects with ProviderFault when the provider does not say how it is asked. */
  begin(): Promise<{ readonly url: string; readonly checks: SignInChecks }>
  /**
   * Reads UserInfo (OpenID Connect Core 1.0, 5.3) when the ID token lacks one of `needed`: by 5.4 a provider
   * need not put claims into the token.
   * @param query of the request with which the browser came back
   * @param needed paths of claims, as `claimAt` reads them Rejects with ProviderFault: `denied` when the
   *   person or the provider said no or what came back is not what was asked for, `unreachable` when the
   *   provider could not be asked.
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
