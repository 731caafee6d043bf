/**
 * Browser sessions: a cookie that scripts cannot read, valid for some hours or until sign-out. They are in
 * the store, so that they continue after a restart or a takeover, unless the sign-in settings have changed.
 */
import { randomBytes } from 'node:crypto'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import type { RankedRole } from '../../model/role.ts'
import { SESSION_ID_PREFIX, type TokenRecord } from '../../ports/store.ts'
import { ask } from '../http/ask.ts'
import type { Caller } from './caller.ts'
import { hashOf, isSecretOf } from './token-secrets.ts'

export interface SessionsOptions {
  readonly book: AccessRegistry
  readonly now: () => Instant
  readonly lifetimeMs: DurationMs
  /** Names the sign-in settings: sessions that began under other ones are not valid. */
  readonly settings: string
}

const SECRET_BYTES = 32
const ID_CHARACTERS = 12

export class Sessions {
  readonly #options: SessionsOptions

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get lifetimeMs(): DurationMs {
    return this.#options.lifetimeMs
  }

  /**
   * Returns the secret, which is not stored, once the session is durable.
   * @throws ApiProblem when the store has failed
   */
  async begin(name: string, role: RankedRole): Promise<{ readonly secret: string; readonly caller: Caller }> {
    const { book, now, lifetimeMs, settings } = this.#options
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const createdAt = now()
    const record = {
      ...{ id: idOf(secret), name, role, secretHash: hashOf(secret), session: settings },
      ...{ createdAt, createdBy: null, expiresAt: createdAt + lifetimeMs, lastUsedAt: null },
    }
    await ask<TokenRecord>((answer) => book.beginSession(record, answer))
    return { secret, caller: callerIn(record) }
  }

  /** Returns null for an unknown or expired session. */
  callerOf(secret: string): Caller | null {
    const session = this.#valid(idOf(secret))
    return session !== null && isSecretOf(secret, session.secretHash) ? callerIn(session) : null
  }

  expiresAt(id: string): Instant | null {
    return this.#options.book.session(id)?.expiresAt ?? null
  }

  /** By the id of its caller. */
  isGood(id: string): boolean {
    return this.#valid(id) !== null
  }

  /**
   * Ends the session at once; resolves when this is durable.
   * @throws ApiProblem when the store has failed
   */
  async end(id: string): Promise<void> {
    const { book } = this.#options
    if (book.session(id) !== undefined) await ask<null>((answer) => book.revoke(id, answer))
  }

  #valid(id: string): TokenRecord | null {
    const { book, now, settings } = this.#options
    const session = book.session(id)
    if (session?.session !== settings || (session.expiresAt ?? 0) <= now()) return null
    return session
  }
}

/** Derived from the hash, so that the duration of a lookup reveals nothing about the secret. */
function idOf(secret: string): string {
  return `${SESSION_ID_PREFIX}${hashOf(secret).slice(0, ID_CHARACTERS)}`
}

function callerIn({ id, name, role }: TokenRecord): Caller {
  return { name, role, tokenId: id }
}
