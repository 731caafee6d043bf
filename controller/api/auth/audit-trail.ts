/** The audit trail of requests. An entry is committed with its change, and amended if the outcome differs. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { AccessRegistry, AuditEntry } from '../../engine/inputs/commands/access-registry.ts'

/** Maximum characters of a path in an entry. */
const MAX_TARGET = 300

/** Refusals because of identity, origin or rate: they concern no resource. */
const ACCESS_CODES: ReadonlySet<string> = new Set([
  'unauthorized',
  'forbidden',
  'cross_site_request',
  'misdirected_request',
  'too_many_requests',
])

export type AuditSubject = Pick<
  AuditEntry,
  'kind' | 'actor' | 'role' | 'tokenId' | 'address' | 'requestId' | 'action' | 'target'
>

export class AuditTrail {
  readonly #book: AccessRegistry
  readonly #now: () => Instant
  readonly #refusals = new RefusalSampler()

  constructor(book: AccessRegistry, now: () => Instant) {
    this.#book = book
    this.#now = now
  }

  /** Begins an entry for a request that was admitted. Returns the number of the entry. */
  begin(subject: AuditSubject): number {
    return this.#book.begin({
      ...cut(subject),
      at: this.#now(),
      outcome: 'accepted',
      status: null,
      code: null,
      leftOut: 0,
    })
  }

  /** Records an effect of a request after its answer. */
  note(subject: AuditSubject): void {
    const entry = { at: this.#now(), outcome: 'accepted', status: null, code: null, leftOut: 0 } as const
    this.#book.add({ ...cut(subject), ...entry })
  }

  /** @param begun its number, if it was let in; null: it was refused before. */
  end(begun: number | null, subject: AuditSubject, status: number, code: string | null): void {
    if (status < 400) {
      this.#book.settle()
      return
    }
    const outcome = status >= 500 ? 'failed' : 'refused'
    const entry = { ...cut(subject), at: this.#now(), outcome, status, code } as const
    if (begun !== null) this.#book.amend(begun, { ...entry, leftOut: 0 })
    else
      this.#refuse(
        { ...entry, kind: isOfAccess(code) ? 'refusal' : subject.kind },
        subject.tokenId ?? subject.address ?? '',
      )
  }

  /**
   * Records a refused message of a node or a client: it names another sender than its subject.
   */
  messageRefused(sender: string | null, reason: string): void {
    const noCaller = { role: null, tokenId: null, address: null, requestId: null, status: null }
    const what = {
      kind: 'refusal',
      actor: sender,
      action: 'message',
      target: reason,
      outcome: 'refused',
      code: reason,
    } as const
    this.#refuse({ ...noCaller, ...what, at: this.#now() }, `message ${reason} ${sender ?? ''}`)
  }

  #refuse(entry: Omit<AuditEntry, 'leftOut'>, source: string): void {
    const leftOut = this.#refusals.keep(source, this.#now())
    if (leftOut !== null) this.#book.add({ ...entry, leftOut })
  }
}

export function isOfAccess(code: string | null): boolean {
  return code !== null && ACCESS_CODES.has(code)
}

function cut(subject: AuditSubject): AuditSubject {
  return subject.target.length <= MAX_TARGET
    ? subject
    : { ...subject, target: `${subject.target.slice(0, MAX_TARGET)}…` }
}

/**
 * Refusals can be caused by the thousand: of each source the first of a minute are kept, and the next one
 * says how many were left out.
 */

const WINDOW_MS: DurationMs = 60_000
/** Kept of one source in a window. */
const KEPT_OF_SOURCE = 30
/** Kept of all sources in a window. */
const KEPT_OF_ALL = 600
/** Maximum number of sources in a window; further sources count as one. */
const MAX_SOURCES = 1_000
const OTHERS = 'others'

interface Seen {
  kept: number
  leftOut: number
}

export class RefusalSampler {
  readonly #seen = new Map<string, Seen>()
  #since: Instant = -Infinity
  #kept = 0

  /** null: leave it out. Else how many of this source were left out before it. */
  keep(source: string, now: Instant): number | null {
    if (now - this.#since >= WINDOW_MS) this.#beginWindow(now)
    const key = this.#seen.has(source) || this.#seen.size < MAX_SOURCES ? source : OTHERS
    const seen = this.#seen.get(key) ?? { kept: 0, leftOut: 0 }
    this.#seen.set(key, seen)
    if (seen.kept >= KEPT_OF_SOURCE || this.#kept >= KEPT_OF_ALL) {
      seen.leftOut += 1
      return null
    }
    const { leftOut } = seen
    seen.kept += 1
    seen.leftOut = 0
    this.#kept += 1
    return leftOut
  }

  /** The number of omitted entries is kept until the source sends another request. */
  #beginWindow(now: Instant): void {
    this.#since = now
    this.#kept = 0
    for (const [source, seen] of this.#seen) {
      if (seen.leftOut === 0) this.#seen.delete(source)
      else seen.kept = 0
    }
  }
}
