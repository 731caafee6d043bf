/** Log lines that a broken or hostile peer could cause by the thousand: counted all, written seldom. */
import type { Logger } from 'pino'

/** One of a kind is written this often at most; the next says how many there were. */
const WRITE_INTERVAL_MS = 10_000
/** Kinds that are told apart; further ones are counted together. */
const MAX_KINDS = 64
const OTHERS = 'others'

export interface RateLimitedLog {
  /** So many of each kind so far. */
  readonly counts: ReadonlyMap<string, number>
  /** `kind` says which lines are alike: a reason, never what came in. */
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
