/**
 * Adds controller time to a store. For existing history only wall-clock times are known: they are used as
 * they are, up to the moment of the migration. Released: this file must not change.
 */
import { sql, type Kysely } from 'kysely'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** @param at milliseconds since the Unix epoch */
export async function addRetentionClock(db: Kysely<never>, at: number): Promise<void> {
  await sql`create table retention_clock (
    id integer primary key check (id = 1),
    controller_ms integer not null,
    wall_ms integer not null,
    event_credit real not null,
    decision_credit real not null
  ) strict`.execute(db)
  await sql`create table retention_marks (
    controller_ms integer primary key,
    event_seq integer not null,
    decision_number integer not null
  ) strict`.execute(db)
  const newest = await sql<{ at: number | null }>`select max(at) as at from
    (select at from events where at <= ${at} union all select at from decisions where at <= ${at})`.execute(
    db,
  )
  const newestAt = newest.rows[0]?.at ?? at
  const now = newestAt + Math.min(at - newestAt, DAY_MS)
  await sql`insert into retention_clock values (1, ${now}, ${at}, 0, 0)`.execute(db)
  await markHours(db, now)
}

/**
 * A mark for the end of each hour: the last row up to then. A time after now, written with a wrong clock,
 * counts as now. Literals, because a bound number is a REAL, and an hour must be an integer.
 */
async function markHours(db: Kysely<never>, nowMs: number): Promise<void> {
  const [now, hour] = [sql.lit(nowMs), sql.lit(HOUR_MS)]
  await sql`insert or replace into retention_marks (controller_ms, event_seq, decision_number)
    with hours (hour, event_seq, decision_number) as (
      select min(at, ${now}) / ${hour}, max(seq), 0 from events group by 1
      union all select min(at, ${now}) / ${hour}, 0, max(number) from decisions group by 1
    )
    select min((hour + 1) * ${hour}, ${now}), max(max(event_seq)) over before,
      max(max(decision_number)) over before
    from hours group by hour window before as (order by hour rows unbounded preceding)
    order by hour`.execute(db)
}
