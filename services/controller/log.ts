/** Log lines of a controller: few lines of one kind, and changes by clients of the bus. */
import type { Logger } from 'pino'
import type { AuditTrail } from '../../controller/api/auth/audit-trail.ts'
import type { ClientAudit } from '../../controller/wire/client-audit.ts'

/** Minimum interval between lines of one kind; the next line says how many there were. */
const WRITE_INTERVAL_MS = 10_000
/** Maximum number of kinds; further ones are counted together. */
const MAX_KINDS = 64
const OTHERS = 'others'

interface RateLimitedLog {
  /** Count of each kind so far. */
  readonly counts: ReadonlyMap<string, number>
  /** `kind` groups equal lines: a reason, never external input. */
  warn(kind: string, facts: Readonly<Record<string, unknown>>, text: string): void
}

export function createRateLimitedLog(log: Logger, now: () => number): RateLimitedLog {
  const counts = new Map<string, number>()
  const written = new Map<string, { at: number; count: number }>()
  return {
    counts,
    warn(kind, facts, text) {
      const key = counts.has(kind) || counts.size < MAX_KINDS ? kind : OTHERS
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      const last = written.get(key)
      if (last !== undefined && now() - last.at < WRITE_INTERVAL_MS) return
      written.set(key, { at: now(), count })
      log.warn({ ...facts, since_last: count - (last?.count ?? 0) }, text)
    },
  }
}

/**
 * Adds changes by clients of the bus to the audit of the REST API. The audit is created after the
 * controller, whose first client request comes later.
 */

/** No entry has this number. */
const NOT_BEGUN = 0

export function auditOfClients(trail: () => AuditTrail | null): ClientAudit {
  return {
    begin: (subject) => trail()?.begin(subject) ?? NOT_BEGUN,
    end: (begun, subject, status, code) =>
      trail()?.end(begun === NOT_BEGUN ? null : begun, subject, status, code),
  }
}
