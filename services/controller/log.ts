/** The log of a process: JSON lines on stderr, without secrets. */
import { pino, type DestinationStream, type Logger } from 'pino'
import type { AuditTrail } from '../../controller/api/auth/audit-trail.ts'
import type { ClientAudit } from '../../controller/wire/client-audit.ts'
import type { LogLevel } from '../settings/env-table.ts'

const HIDDEN = (): string => '…'

/**
 * Headers and tokens are never logged on purpose, but a logged object could contain them. Uses serialisers
 * instead of pino's redaction, which costs some 20 µs per line, where a line costs 3 µs (measured).
 */
const SERIALIZERS = {
  req: lineOf,
  request: lineOf,
  err: factsOf,
  ...Object.fromEntries(
    ['headers', 'body', 'query', 'authorization', 'cookie', 'secret', 'token', 'password'].map((name) => [
      name,
      HIDDEN,
    ]),
  ),
}

interface RequestLike {
  readonly method?: string
  readonly url?: string
}

export function createLog(
  level: LogLevel,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Logger {
  return pino({ level, serializers: SERIALIZERS }, destination)
}

/** Method and path of a request: headers and query may hold private data. */
function lineOf({ method, url = '' }: RequestLike): RequestLike {
  return { ...(method === undefined ? {} : { method }), url: url.split('?', 1)[0] ?? '' }
}

/** Message and stack of an error; libraries attach requests and options to theirs. */
function factsOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code } = error as NodeJS.ErrnoException
  const cause = error.cause === undefined ? {} : { cause: factsOf(error.cause) }
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...cause,
  }
}

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
 * Adds changes by clients of the bus to the audit of the REST interface. The audit is created after the
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
