/**
 * Browser sessions: a cookie that scripts cannot read, valid for some hours or until sign-out. Kept in
 * memory: after a restart of the controller users sign in again, which is one redirect if the provider still
 * knows them.
 */
import { randomBytes } from 'node:crypto'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { RankedRole } from '../../model/role.ts'
import type { Caller } from './caller.ts'
import { hashOf } from './token-secrets.ts'

export interface SessionsOptions {
  readonly now: () => Instant
  readonly lifetimeMs: DurationMs
  /** Maximum number; beyond it the oldest session ends. */
  readonly maxSessions?: number
}

interface Session {
  readonly caller: Caller
  readonly expiresAt: Instant
}

const MAX_SESSIONS = 10_000
const SECRET_BYTES = 32
const ID_CHARACTERS = 12

export class Sessions {
  readonly #options: SessionsOptions
  /** By the hash of the secret; the hash by the id that audit log and streams use. */
  readonly #sessions = new Map<string, Session>()
  readonly #hashById = new Map<string, string>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get lifetimeMs(): DurationMs {
    return this.#options.lifetimeMs
  }

  /** Returns the secret, which is not stored. */
  begin(name: string, role: RankedRole): { readonly secret: string; readonly caller: Caller } {
    const { now, lifetimeMs, maxSessions = MAX_SESSIONS } = this.#options
    const oldest = this.#sessions.size >= maxSessions ? this.#sessions.keys().next() : null
    if (oldest?.done === false) this.#forget(oldest.value)
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const hash = hashOf(secret)
    const caller: Caller = { name, role, tokenId: `session-${hash.slice(0, ID_CHARACTERS)}` }
    this.#sessions.set(hash, { caller, expiresAt: now() + lifetimeMs })
    this.#hashById.set(caller.tokenId as string, hash)
    return { secret, caller }
  }

  /**
   * Returns null for an unknown or expired session. The lookup is by hash, so that its duration reveals
   * nothing about the secret.
   */
  callerOf(secret: string): Caller | null {
    const hash = hashOf(secret)
    const session = this.#sessions.get(hash)
    if (session === undefined) return null
    if (session.expiresAt > this.#options.now()) return session.caller
    this.#forget(hash)
    return null
  }

  expiresAt(tokenId: string): Instant | null {
    return this.#sessions.get(this.#hashById.get(tokenId) ?? '')?.expiresAt ?? null
  }

  /** By the id of its caller. */
  isGood(tokenId: string): boolean {
    const expiresAt = this.expiresAt(tokenId)
    return expiresAt !== null && expiresAt > this.#options.now()
  }

  end(tokenId: string): void {
    const hash = this.#hashById.get(tokenId)
    if (hash !== undefined) this.#forget(hash)
  }

  #forget(hash: string): void {
    const session = this.#sessions.get(hash)
    this.#sessions.delete(hash)
    if (session !== undefined) this.#hashById.delete(session.caller.tokenId as string)
  }
}
