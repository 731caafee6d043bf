/** Counts the standbys of the store, for the metrics of the leader. */
import { sql, type Kysely } from 'kysely'
import type { Schema } from '../sql/schema.ts'

export interface Succession {
  /** Controllers that could take over, seen lately. */
  readonly standbys: number
  /** Other controllers of the store that were there in the last week, whether or not they are now. */
  readonly others: number
  /** Delay of the standby that is the furthest behind; null: no standby follows. */
  readonly lagMs: number | null
  /** Number of terms of all controllers of the store. */
  readonly terms: number
}

const LOOK_EVERY_MS = 5_000

/** Null before the first answer, and after a failed one. */
export function countStandbys(db: Kysely<Schema>): { current(): Succession | null; stop(): void } {
  let current: Succession | null = null
  const query = sql<Succession>`
    select takeovers as terms, seen.standbys, seen.others, seen.lag_ms as "lagMs"
    from headroom.lease, lateral (
      select count(*) as others, count(*) filter (
        where may_lead = 1 and seen > clock_timestamp() - interval '10 seconds') as standbys,
        max(lag_ms) filter (
          where may_lead = 1 and seen > clock_timestamp() - interval '10 seconds') as lag_ms
      from headroom.controllers
      where name <> lease.name and seen > clock_timestamp() - interval '7 days') seen`
  const look = async (): Promise<void> => {
    current = await query.execute(db).then(
      ({ rows }) => rows[0] ?? null,
      () => null,
    )
  }
  void look()
  const timer = setInterval(() => void look(), LOOK_EVERY_MS).unref()
  return { current: () => current, stop: () => clearInterval(timer) }
}
