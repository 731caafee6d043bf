/**
 * Sign-in with a browser through an identity provider. In order: the browser is redirected to the provider,
 * and the pending sign-in is stored under a cookie of that browser; the browser returns with a code; the
 * provider exchanges it for an identity; the claims determine name and role; a session begins.
 */
import { randomBytes } from 'node:crypto'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { claimsNeeded, personOf, type ClaimRules } from '../../model/role-claims.ts'
import { ProviderFault, type IdentityProvider, type SignInChecks } from '../../ports/identity-provider.ts'
import type { Caller } from './caller.ts'
import type { Sessions } from './sessions.ts'

export interface SignInOptions {
  readonly provider: IdentityProvider
  readonly rules: ClaimRules
  readonly sessions: Sessions
  readonly now: () => Instant
  /** Browsers reach this controller over TLS: cookies are restricted to it. */
  readonly isSecure: boolean
}

/** Reason of a failed sign-in, which the page shows as text. */
export type SignInFailure = 'expired' | 'denied' | 'no_role' | 'provider_unreachable'

export type SignInOutcome =
  | { readonly ok: true; readonly secret: string; readonly caller: Caller; readonly returnTo: string }
  | { readonly ok: false; readonly failure: SignInFailure; readonly why: string }

interface Pending {
  readonly checks: SignInChecks
  readonly returnTo: string
  readonly expiresAt: Instant
}

/** Maximum time at the provider. */
const PENDING_MS: DurationMs = 600_000
/** Maximum number; beyond it the oldest is forgotten. */
const MAX_PENDING = 10_000
const ID_BYTES = 24

export class SignIn {
  readonly #options: SignInOptions
  readonly #pending = new Map<string, Pending>()

  constructor(options: SignInOptions) {
    this.#options = options
  }

  get provider(): string {
    return this.#options.provider.name
  }

  get isSecure(): boolean {
    return this.#options.isSecure
  }

  get sessions(): Sessions {
    return this.#options.sessions
  }

  /** @param returnTo a path of this server. Rejects with ProviderFault. */
  async begin(
    returnTo: string,
  ): Promise<{ readonly url: string; readonly id: string; readonly maxAgeSeconds: number }> {
    const { url, checks } = await this.#options.provider.begin()
    const oldest = this.#pending.size >= MAX_PENDING ? this.#pending.keys().next() : null
    if (oldest?.done === false) this.#pending.delete(oldest.value)
    const id = randomBytes(ID_BYTES).toString('base64url')
    this.#pending.set(id, { checks, returnTo, expiresAt: this.#options.now() + PENDING_MS })
    return { url, id, maxAgeSeconds: PENDING_MS / 1000 }
  }

  /** @param id as in the browser's cookie; valid once */
  async finish(id: string | null, query: URLSearchParams): Promise<SignInOutcome> {
    const { provider, rules, sessions, now } = this.#options
    const pending = id === null ? undefined : this.#pending.get(id)
    if (id !== null) this.#pending.delete(id)
    if (pending === undefined || pending.expiresAt <= now()) {
      return {
        ok: false,
        failure: 'expired',
        why: 'this browser did not start a sign-in here in the last ten minutes',
      }
    }
    try {
      const { claims, lookedIn } = await provider.finish(query, pending.checks, claimsNeeded(rules))
      const person = personOf(claims, rules)
      if (!person.ok) {
        const place =
          person.missing === null ? '' : ` (searched in ${lookedIn}; does CONTROLLER_OIDC_SCOPE request it?)`
        return { ok: false, failure: 'no_role', why: `${person.why}${place}` }
      }
      return { ok: true, ...(await sessions.begin(person.name, person.role)), returnTo: pending.returnTo }
    } catch (error) {
      if (!(error instanceof ProviderFault)) throw error
      return {
        ok: false,
        failure: error.kind === 'denied' ? 'denied' : 'provider_unreachable',
        why: error.message,
      }
    }
  }
}

/** Accepts only a path of this server; otherwise a link could send users elsewhere after the sign-in. */
export function ownPath(path: string | undefined): string {
  return path !== undefined && /^\/(?![/\\])[\x21-\x7e]{0,2000}$/.test(path) && !path.includes('\\')
    ? path
    : '/'
}
