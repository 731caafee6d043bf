/** Somebody else who says who a person is: an OpenID Connect provider (OpenID Connect Core 1.0, authorization code flow with PKCE). */

/** What has to be remembered from the redirect to the provider until the browser comes back. */
export interface SignInChecks {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** Of the ID token, verified: issuer, audience, signature, nonce and times are as they must be. */
export type Claims = Readonly<Record<string, unknown>>

export interface IdentityProvider {
  /** As people know it: the host of the issuer. */
  readonly name: string
  /** Where to send the browser. Rejects with ProviderFault when the provider does not say how it is asked. */
  begin(): Promise<{ readonly url: string; readonly checks: SignInChecks }>
  /**
   * @param query of the request with which the browser came back
   * Rejects with ProviderFault: `denied` when the person or the provider said no or what came back is not what was asked for, `unreachable`
   * when the provider could not be asked.
   */
  finish(query: URLSearchParams, checks: SignInChecks): Promise<Claims>
}

export class ProviderFault extends Error {
  override readonly name = 'ProviderFault'
  readonly kind: 'denied' | 'unreachable'

  constructor(kind: 'denied' | 'unreachable', message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}
