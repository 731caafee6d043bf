/**
 * What stands between a request and its route: who may ask, under which name, how often, and what is
 * remembered of it.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import { AuditTrail } from './audit-trail.ts'
import { Authenticator } from './authenticator.ts'
import { hostRules, type HostRules } from './host-rules.ts'
import type { SignIn } from './sign-in.ts'
import { createRateLimiter, type RateLimiter } from './rate-limiter.ts'

export interface AccessOptions {
  /** Tokens and audit; null: there are none, and whoever asks may do everything (a simulated world). */
  readonly book: AccessRegistry | null
  /** The time of the day: tokens expire by it, whatever time a simulated fleet has reached. */
  readonly now: () => Instant
  /** Hash of the admin token that the environment names. */
  readonly adminTokenHash?: string | null
  /** How people sign in with a browser; null: not at all. */
  readonly signIn?: SignIn | null
  /** Names under which it may be asked, beside loopback names and addresses. */
  readonly allowedHosts?: readonly string[]
  /** Of one token; 0: no limit. */
  readonly requestsPerSecond?: number
  /** Of one address, without a token that is known; 0: no limit. */
  readonly anonymousRequestsPerSecond?: number
}

/** Far above what one client needs, far below what would starve the others. */
export const REQUESTS_PER_SECOND = 5_000
export const ANONYMOUS_REQUESTS_PER_SECOND = 100

export interface Access {
  readonly book: AccessRegistry | null
  readonly now: () => Instant
  readonly authenticator: Pick<
    Authenticator,
    'isRequired' | 'callerOf' | 'knownCaller' | 'isGood' | 'hasAdmin'
  >
  readonly signIn: SignIn | null
  readonly hosts: HostRules
  readonly ofTokens: RateLimiter
  readonly ofAddresses: RateLimiter
  /** null: nothing is audited. */
  readonly trail: AuditTrail | null
}

export function createAccess(options: AccessOptions): Access {
  const { book, now, adminTokenHash = null, signIn = null, allowedHosts = [] } = options
  return {
    book,
    now,
    authenticator: new Authenticator({ book, adminTokenHash, now, signIn }),
    signIn,
    hosts: hostRules(allowedHosts),
    ofTokens: createRateLimiter(options.requestsPerSecond ?? REQUESTS_PER_SECOND),
    ofAddresses: createRateLimiter(options.anonymousRequestsPerSecond ?? ANONYMOUS_REQUESTS_PER_SECOND),
    trail: book === null ? null : new AuditTrail(book, now),
  }
}
