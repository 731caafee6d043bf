/**
 * Idempotency keys: who sends a submission again is told of the task that the first one made. A key is
 * written with its task, in one batch, and kept for a while; both key and body are digests that the caller
 * makes.
 */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { SubmissionKeyRecord } from '../../ports/store.ts'
import type { Transaction } from '../transaction.ts'

/** A key is answered with its task for this long. */
export const KEY_RETENTION_MS: DurationMs = 24 * 3_600_000
/** The newest keys are kept, up to this number. */
export const MAX_KEYS = 100_000

/** A key of one caller, and the body that came with it. */
export interface SubmissionKey {
  readonly key: string
  readonly body: string
}

export class SubmissionKeys {
  /** Oldest first: a key that comes again after its time is added anew. */
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

  /** Written with its task, in the same turn. */
  add(record: SubmissionKeyRecord, turn: Transaction): void {
    this.#byKey.delete(record.key)
    this.#byKey.set(record.key, record)
    let keptFromSeq = record.seq
    // By number only: a clock that is wrong at a start must not remove keys. `find` honours their age.
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
