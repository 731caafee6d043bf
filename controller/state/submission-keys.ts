/**
 * Idempotency keys: a repeated submission is answered with the task of the first one. A key is stored with
 * its task in one batch and kept for a limited time. Both key and body are digests made by the caller.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { SubmissionKeyRecord } from '../ports/store.ts'
import type { Transaction } from './transaction.ts'

/** A key is answered with its task for this long. */
export const KEY_RETENTION_MS: DurationMs = 24 * 3_600_000
/** Maximum number of keys; the newest are kept. */
const MAX_KEYS = 100_000

export class SubmissionKeys {
  /** Oldest first: an expired key that is used again moves to the end. */
  readonly #byKey = new Map<string, SubmissionKeyRecord>()
  readonly #maxKeys: number

  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#byKey.size
  }

  /** Oldest first. */
  records(): Iterable<SubmissionKeyRecord> {
    return this.#byKey.values()
  }

  restore(records: readonly SubmissionKeyRecord[]): void {
    for (const record of records) this.#byKey.set(record.key, record)
  }

  find(key: string, now: Instant): SubmissionKeyRecord | null {
    const known = this.#byKey.get(key)
    return known !== undefined && now < known.at + KEY_RETENTION_MS ? known : null
  }

  /** Adds a record to the transaction of its task. */
  add(record: SubmissionKeyRecord, turn: Transaction): void {
    this.#byKey.delete(record.key)
    this.#byKey.set(record.key, record)
    let keptFromSeq = record.seq
    // Only by number: a wrong clock at a start must not remove keys. `find` checks their age.
    for (const [key, { seq }] of this.#byKey) {
      keptFromSeq = seq
      if (this.#byKey.size <= this.#maxKeys) break
      this.#byKey.delete(key)
    }
    turn.submissionKeys ??= { added: [], keptFromSeq }
    turn.submissionKeys.added.push(record)
    turn.submissionKeys.keptFromSeq = keptFromSeq
  }
}
