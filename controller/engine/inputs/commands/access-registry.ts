/** API tokens, secrets and audit entries, made durable together with the changes they belong to. */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import { noAccessChanges, secretId } from '../../../ports/store.ts'
import type {
  AccessChanges,
  AuditRecord,
  SecretRecord,
  StoredState,
  TokenRecord,
} from '../../../ports/store.ts'
import type { AnswerTo, Refusal } from '../../../model/command.ts'
import { byCodeUnits } from '../../../structures/order.ts'
import type { CommitFailed, Transaction } from '../../../state/transaction.ts'

/** Maximum number of tokens. */
export const MAX_TOKENS = 1_000
/** Maximum number of browser sessions; beyond it the oldest ends. */
export const MAX_SESSIONS = 10_000
/** Maximum number of secrets of one owner, and of all. */
export const MAX_SECRETS_OF_OWNER = 256
const MAX_SECRETS = 10_000
/** Minimum interval between writes of `lastUsedAt`: a token in use costs the store one row per hour. */
const NOTE_USE_EVERY_MS: DurationMs = 3_600_000

export type AuditEntry = Omit<AuditRecord, 'seq'>

/** The part of the engine's transaction that tokens and audit need. */
export interface AccessTransaction {
  readonly transaction: () => Transaction
  /** Calls `done` once everything in the transaction is durable. */
  readonly whenDurable: (done: () => void, failed: CommitFailed) => void
  /** Commits the transaction now if it is not empty and no other commit is in progress. */
  readonly write: () => void
  /** Why nothing is stored anymore; null while the store works. */
  readonly fault: () => string | null
}

export class AccessRegistry {
  readonly #tokens = new Map<string, TokenRecord>()
  readonly #sessions = new Map<string, TokenRecord>()
  readonly #secrets = new Map<string, SecretRecord>()
  readonly #access: AccessTransaction
  #lastAuditSeq = 0

  constructor(turn: AccessTransaction) {
    this.#access = turn
  }

  restore({ tokens, secrets, lastAuditSeq }: Pick<StoredState, 'tokens' | 'secrets' | 'lastAuditSeq'>): void {
    for (const secret of secrets) this.#secrets.set(secretId(secret), secret)
    for (const token of tokens) this.#of(token).set(token.id, token)
    this.#lastAuditSeq = lastAuditSeq
  }

  /** Number of tokens, without sessions. */
  get size(): number {
    return this.#tokens.size
  }

  /** In order of creation. */
  tokens(): Iterable<TokenRecord> {
    return this.#tokens.values()
  }

  token(id: string): TokenRecord | undefined {
    return this.#tokens.get(id)
  }

  create(token: TokenRecord, answer: AnswerTo<TokenRecord>): void {
    if (this.#tokens.has(token.id))
      return refuse(answer, { code: 'conflict', detail: `Token ${token.id} already exists.` })
    if (this.#tokens.size >= MAX_TOKENS) {
      return refuse(answer, {
        code: 'conflict',
        detail: `There are too many tokens (limit: ${MAX_TOKENS}). Revoke one first.`,
      })
    }
    if (this.#refusesAll(answer)) return
    this.#tokens.set(token.id, token)
    this.#records().tokens.push(token)
    this.#answer(token, answer)
  }

  /** Returns the session of a browser, valid or not. */
  session(id: string): TokenRecord | undefined {
    return this.#sessions.get(id)
  }

  /** Removes expired sessions, and the oldest one beyond the limit. */
  beginSession(session: TokenRecord, answer: AnswerTo<TokenRecord>): void {
    if (this.#refusesAll(answer)) return
    for (const [id, { expiresAt }] of this.#sessions) {
      const isExpired = expiresAt !== null && expiresAt <= session.createdAt
      if (!isExpired && this.#sessions.size < MAX_SESSIONS) break
      this.#sessions.delete(id)
      this.#revoke(id)
    }
    this.#sessions.set(session.id, session)
    this.#records().tokens.push(session)
    this.#answer(session, answer)
  }

  /** Revokes a token or session at once; the answer is sent when the revocation is durable. */
  revoke(id: string, answer: AnswerTo<null>): void {
    if (!this.#tokens.has(id) && !this.#sessions.has(id))
      return refuse(answer, { code: 'not_found', what: 'token', id })
    if (this.#refusesAll(answer)) return
    this.#tokens.delete(id)
    this.#sessions.delete(id)
    this.#revoke(id)
    this.#answer(null, answer)
  }

  /** By name. */
  secretsOf(owner: string | null): readonly SecretRecord[] {
    const own = [...this.#secrets.values()].filter((secret) => secret.owner === owner)
    return own.sort((a, b) => byCodeUnits(a.name, b.name))
  }

  secret(owner: string | null, name: string): SecretRecord | undefined {
    return this.#secrets.get(secretId({ owner, name }))
  }

  /** Adds the secret, or replaces its value; the answer is sent when it is durable. */
  putSecret(secret: SecretRecord, answer: AnswerTo<SecretRecord>): void {
    const id = secretId(secret)
    if (!this.#secrets.has(id)) {
      const isFull = this.secretsOf(secret.owner).length >= MAX_SECRETS_OF_OWNER
      if (isFull || this.#secrets.size >= MAX_SECRETS) {
        const limit = isFull ? `one owner may have ${MAX_SECRETS_OF_OWNER}` : `all owners have ${MAX_SECRETS}`
        return refuse(answer, {
          code: 'conflict',
          detail: `The limit of secrets is reached: ${limit}. Delete one first.`,
        })
      }
    }
    if (this.#refusesAll(answer)) return
    this.#secrets.set(id, secret)
    this.#withoutChangesOf(id).secrets.push(secret)
    this.#answer(secret, answer)
  }

  deleteSecret(owner: string | null, name: string, answer: AnswerTo<null>): void {
    const id = secretId({ owner, name })
    if (!this.#secrets.has(id)) return refuse(answer, { code: 'not_found', what: 'secret', id: name })
    if (this.#refusesAll(answer)) return
    this.#secrets.delete(id)
    this.#withoutChangesOf(id).deletedSecrets.push({ owner, name })
    this.#answer(null, answer)
  }

  /** Records the use of a token for a request. */
  used(token: TokenRecord, now: Instant): void {
    if (token.lastUsedAt !== null && now - token.lastUsedAt < NOTE_USE_EVERY_MS) return
    const noted = { ...token, lastUsedAt: now }
    this.#tokens.set(token.id, noted)
    if (this.#access.fault() !== null) return
    this.#records().tokens.push(noted)
    this.#access.write()
  }

  /**
   * Adds an audit entry that becomes durable with the change it describes, or before it. Returns its number.
   */
  begin(entry: AuditEntry): number {
    this.#lastAuditSeq += 1
    this.#keep({ ...entry, seq: this.#lastAuditSeq })
    return this.#lastAuditSeq
  }

  /** Replaces the entry with its actual outcome. */
  amend(seq: number, entry: AuditEntry): void {
    this.#keep({ ...entry, seq })
    this.#access.write()
  }

  add(entry: AuditEntry): void {
    this.begin(entry)
    this.#access.write()
  }

  /** Commits entries that no change has committed yet. */
  settle(): void {
    this.#access.write()
  }

  #of({ session }: TokenRecord): Map<string, TokenRecord> {
    return session === undefined ? this.#tokens : this.#sessions
  }

  #revoke(id: string): void {
    const records = this.#records()
    // Its last use may be in the same transaction, where it would add the token again.
    records.tokens = records.tokens.filter((token) => token.id !== id)
    records.revokedTokenIds.push(id)
  }

  /** Only the last change of a secret counts: a transaction has no order. */
  #withoutChangesOf(id: string): AccessChanges {
    const records = this.#records()
    const isOther = (each: Pick<SecretRecord, 'owner' | 'name'>) => secretId(each) !== id
    records.secrets = records.secrets.filter(isOther)
    records.deletedSecrets = records.deletedSecrets.filter(isOther)
    return records
  }

  /** After a failure of the store nothing is queued, so that memory stays bounded. */
  #keep(audit: AuditRecord): void {
    if (this.#access.fault() === null) this.#records().audits.push(audit)
  }

  #records(): AccessChanges {
    return (this.#access.transaction().access ??= noAccessChanges())
  }

  #refusesAll(answer: AnswerTo<never>): boolean {
    const detail = this.#access.fault()
    if (detail === null) return false
    refuse(answer, { code: 'store_failed', detail })
    return true
  }

  #answer<T>(value: T, answer: AnswerTo<T>): void {
    this.#access.whenDurable(
      () => answer({ ok: true, value }),
      (detail, code) => refuse(answer, { code, detail }),
    )
  }
}

function refuse(answer: AnswerTo<never>, refusal: Refusal): void {
  answer({ ok: false, refusal })
}
