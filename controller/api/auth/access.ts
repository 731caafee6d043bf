/** Access control of a request before it reaches its route: identity, permission, rate limit and audit. */
import { isIP } from 'node:net'
import type { Instant } from '../../../protocol/units.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import type { Sealer } from '../../ports/sealer.ts'
import { ApiProblem } from '../http/errors.ts'
import { AuditTrail } from './audit-trail.ts'
import { Authenticator, type Peers } from './authenticator.ts'
import type { SignIn } from './sign-in.ts'

export interface AccessOptions {
  /** Tokens and audit; null in a simulated world: every caller may do everything. */
  readonly book: AccessRegistry | null
  /** Encrypts secrets and environment variables; omitted: they are not kept. */
  readonly sealer?: Sealer | null
  /** The time of the day: tokens expire by it, whatever time a simulated fleet has reached. */
  readonly now: () => Instant
  /** Hash of the admin token that the environment names. */
  readonly adminTokenHash?: string | null
  /** Sign-in with a browser, with sessions in `book`; null: disabled. */
  readonly signIn?: SignInOf | null
  /** Identifies the callers of a Unix socket; null: there is no socket. */
  readonly peers?: Peers | null
  /** Host names that requests may use, in addition to loopback names and addresses. */
  readonly allowedHosts?: readonly string[]
  /** Per token; 0: no limit. */
  readonly requestsPerSecond?: number
  /** Per address, for requests without a valid token; 0: no limit. */
  readonly anonymousRequestsPerSecond?: number
}

export type SignInOf = (book: AccessRegistry) => SignIn

/** Far above what one client needs, far below what would starve the others. */
const REQUESTS_PER_SECOND = 5_000
const ANONYMOUS_REQUESTS_PER_SECOND = 100

export interface Access {
  readonly book: AccessRegistry | null
  /** Null: secrets and values of environment variables are not kept. */
  readonly sealer: Sealer | null
  readonly now: () => Instant
  readonly authenticator: Pick<
    Authenticator,
    'isRequired' | 'callerOf' | 'knownCaller' | 'isGood' | 'hasAdmin'
  >
  readonly signIn: SignIn | null
  /** null: there is no Unix socket. */
  readonly peers: Peers | null
  readonly hosts: HostRules
  readonly ofTokens: RateLimiter
  readonly ofAddresses: RateLimiter
  /** null: nothing is audited. */
  readonly trail: AuditTrail | null
}

export function createAccess(options: AccessOptions): Access {
  const { book, now, adminTokenHash = null, peers = null, allowedHosts = [] } = options
  const signIn = book === null ? null : (options.signIn?.(book) ?? null)
  return {
    book,
    sealer: options.sealer ?? null,
    now,
    authenticator: new Authenticator({ book, adminTokenHash, now, signIn, peers }),
    signIn,
    peers,
    hosts: hostRules(allowedHosts),
    ofTokens: createRateLimiter(options.requestsPerSecond ?? REQUESTS_PER_SECOND),
    ofAddresses: createRateLimiter(options.anonymousRequestsPerSecond ?? ANONYMOUS_REQUESTS_PER_SECOND),
    trail: book === null ? null : new AuditTrail(book, now),
  }
}

/** How many requests a source may make: a bucket that refills steadily and holds two seconds' worth. */
interface RateLimiter {
  /** Takes one; answers 0, or after how many seconds to try again. */
  take(source: string, nowMs: number): number
}

/** Maximum number of known sources. The oldest is forgotten first and then has a full bucket again. */
const MAX_SOURCES = 10_000
const BURST_SECONDS = 2

interface Bucket {
  tokens: number
  at: number
}

/** @param perSecond 0: no limit. */
export function createRateLimiter(perSecond: number, maxSources = MAX_SOURCES): RateLimiter {
  if (perSecond === 0) return { take: () => 0 }
  const buckets = new Map<string, Bucket>()
  const capacity = perSecond * BURST_SECONDS
  return {
    take(source, nowMs) {
      const bucket = buckets.get(source) ?? newBucket(source, nowMs)
      bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.at) / 1000) * perSecond)
      bucket.at = nowMs
      if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond))
      bucket.tokens -= 1
      return 0
    },
  }

  function newBucket(source: string, nowMs: number): Bucket {
    const oldest = buckets.size >= maxSources ? buckets.keys().next() : null
    if (oldest?.done === false) buckets.delete(oldest.value)
    const bucket = { tokens: capacity, at: nowMs }
    buckets.set(source, bucket)
    return bucket
  }
}

/**
 * The host names that this server accepts. A foreign page can let a browser request 127.0.0.1 under a name of
 * its own (DNS rebinding) and then read the answers, so other names are refused. An address cannot be
 * redirected in this way.
 */

interface HostRules {
  /** The names that were configured, also with `*`. */
  readonly names: readonly string[]
  /** @throws ApiProblem misdirected_request */
  require(host: string | undefined): void
  /** Whether a page from there is a page of this server. */
  isOwnOrigin(origin: string, host: string | undefined): boolean
}

/** @param allowed names; `*.example.org` stands for all below it, `*` for any. */
export function hostRules(allowed: readonly string[]): HostRules {
  const isAny = allowed.includes('*')
  const names = new Set(allowed.map((name) => name.toLowerCase()))
  const suffixes = [...names].filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  const isConfigured = (name: string): boolean =>
    names.has(name) || suffixes.some((suffix) => name.endsWith(suffix))
  const isExpected = (name: string): boolean =>
    isAny || isLoopbackName(name) || isIP(name) !== 0 || isConfigured(name)
  // Browsers and clients send the same few again and again.
  const known = new Set<string>()
  return {
    names: [...names],
    require(host) {
      if (host !== undefined && known.has(host)) return
      const name = host === undefined ? null : nameIn(host)
      if (name === null || !isExpected(name)) throw misdirected(host)
      if (known.size < KNOWN_LIMIT && host !== undefined) known.add(host)
    },
    isOwnOrigin(origin, host) {
      const url = URL.parse(origin)
      if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
      return url.host === host?.toLowerCase() || isConfigured(url.hostname)
    },
  }
}

/** Texts of Host that are remembered as good. */
const KNOWN_LIMIT = 100

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** Returns the host without port, brackets and final dot; null for invalid input. */
function nameIn(host: string): string | null {
  const name = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9_.-]{1,253}))(?::\d{1,5})?$/i.exec(host)
  return (name?.[1] ?? name?.[2]?.replace(/\.$/, ''))?.toLowerCase() ?? null
}

function misdirected(host: string | undefined): ApiProblem {
  const shown =
    host === undefined
      ? 'The request has no Host header'
      : `This server does not accept the host name ${JSON.stringify(host.slice(0, 100))}`
  return new ApiProblem(
    'misdirected_request',
    `${shown}. CONTROLLER_HTTP_ALLOWED_HOSTS lists the accepted host names.`,
  )
}
