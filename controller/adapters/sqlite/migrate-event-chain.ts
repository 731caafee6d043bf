/** Step 4: events form a chain, including existing ones. Released: this file must not change. */
import { sql, type Kysely } from 'kysely'
import { canonicalEvent, eventBytes, GENESIS_HASH, nextHash } from '../sql/event-chain.ts'

/** Number of rows read and written at a time. */
const ROWS_AT_A_TIME = 5_000

interface OldRow {
  readonly seq: number
  readonly at: number
  readonly kind: string
  readonly task_id: string | null
  readonly node_id: string | null
  readonly caused_by: number | null
  readonly data: string
}

export async function chainEvents(db: Kysely<never>): Promise<void> {
  await sql`alter table events add column author text`.execute(db)
  await sql`alter table events add column hash blob not null default x''`.execute(db)
  await sql`create index events_of_kind on events (kind, seq)`.execute(db)
  await sql`create table event_chain (
    id integer primary key check (id = 1),
    head_seq integer not null,
    head_hash blob not null,
    pruned_seq integer not null,
    pruned_hash blob not null,
    kept_bytes integer not null
  ) strict`.execute(db)
  const prunedSeq = await lastPrunedSeq(db)
  const { seq, hash, bytes } = await chainRows(db, prunedSeq)
  await sql`insert into event_chain
    values (1, ${seq}, unhex(${hash}), ${prunedSeq}, unhex(${GENESIS_HASH}), ${bytes})`.execute(db)
}

/** Events removed before there was a chain are unknown: the first kept event begins it. */
async function lastPrunedSeq(db: Kysely<never>): Promise<number> {
  const found = await sql<{ seq: number }>`select coalesce(
    (select min(seq) from events), (select max(next_event_seq) from marks), 1) - 1 as seq`.execute(db)
  return found.rows[0]?.seq ?? 0
}

async function chainRows(
  db: Kysely<never>,
  from: number,
): Promise<{ seq: number; hash: string; bytes: number }> {
  let [seq, hash, bytes] = [from, GENESIS_HASH, 0]
  for (;;) {
    const { rows } = await sql<OldRow>`select seq, at, kind, task_id, node_id, caused_by, data from events
      where seq > ${seq} order by seq limit ${ROWS_AT_A_TIME}`.execute(db)
    if (rows.length === 0) return { seq, hash, bytes }
    const links: [number, string][] = []
    for (const row of rows) {
      const canonical = canonicalEvent([
        row.seq,
        row.at,
        row.kind,
        row.task_id,
        row.node_id,
        row.caused_by,
        null,
        row.data,
      ])
      hash = nextHash(hash, canonical)
      bytes += eventBytes(canonical)
      seq = row.seq
      links.push([seq, hash])
    }
    await sql`update events set hash = unhex(link.value ->> 1)
      from json_each(${JSON.stringify(links)}) as link where events.seq = link.value ->> 0`.execute(db)
  }
}
