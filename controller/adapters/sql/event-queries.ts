/** Queries of events, each with an index (test/integration/sqlite-queries.test.ts checks SQLite's plans). */
import type { Kysely } from 'kysely'
import type { EventKind } from '../../model/event.ts'
import type { EventQuery, EventRange } from '../../ports/store.ts'
import type { EventRow } from './rows.ts'
import type { Schema } from './schema.ts'

/** Reads each kind in the order of its index, and merges the first rows of all kinds into a page. */
export async function events(db: Kysely<Schema>, query: EventQuery): Promise<EventRow[]> {
  const bounded = await withinTimes(db, query)
  const { kinds = null, taskId = null, isNewestFirst = false, limit } = bounded
  const isByKind = kinds !== null && taskId === null
  const queries = isByKind
    ? [...new Set(kinds)].map((kind) => eventsQuery(db, bounded, [kind]))
    : [eventsQuery(db, bounded, kinds)]
  const pages = await Promise.all(queries.map((each) => each.execute()))
  const rows =
    pages.length === 1
      ? (pages[0] ?? [])
      : pages.flat().sort((a, b) => (isNewestFirst ? b.seq - a.seq : a.seq - b.seq))
  return rows
    .slice(0, limit)
    .map((row) => [row.seq, row.at, row.kind, row.task_id, row.node_id, row.caused_by, row.author, row.data])
}

export async function eventRange(db: Kysely<Schema>): Promise<EventRange> {
  const ends = await db.selectFrom('event_chain').select(['pruned_seq', 'head_seq']).executeTakeFirstOrThrow()
  return { firstSeq: ends.pruned_seq + 1, lastSeq: ends.head_seq }
}

export function eventsQuery(db: Kysely<Schema>, query: EventQuery, kinds: readonly EventKind[] | null) {
  const {
    afterSeq,
    beforeSeq = null,
    fromAt = null,
    untilAt = null,
    taskId = null,
    nodeId = null,
    isNewestFirst = false,
    limit,
  } = query
  let rows = db
    .selectFrom('events')
    .select(['seq', 'at', 'kind', 'task_id', 'node_id', 'caused_by', 'author', 'data'])
    .where('seq', '>', afterSeq)
  if (beforeSeq !== null) rows = rows.where('seq', '<', beforeSeq)
  if (taskId !== null) rows = rows.where('task_id', '=', taskId)
  if (nodeId !== null) rows = rows.where('node_id', '=', nodeId)
  const [kind] = kinds ?? []
  if (kinds?.length === 1 && kind !== undefined) rows = rows.where('kind', '=', kind)
  else if (kinds !== null) rows = rows.where('kind', 'in', kinds)
  if (fromAt !== null) rows = rows.where('at', '>=', fromAt)
  if (untilAt !== null) rows = rows.where('at', '<', untilAt)
  return rows.orderBy('seq', isNewestFirst ? 'desc' : 'asc').limit(limit)
}

/** Events are in the order of their instants: both ends of a time range are found by binary search. */
async function withinTimes(db: Kysely<Schema>, query: EventQuery): Promise<EventQuery> {
  const { fromAt = null, untilAt = null } = query
  if (fromAt === null && untilAt === null) return query
  const range = await eventRange(db)
  const afterSeq =
    fromAt === null ? query.afterSeq : Math.max(query.afterSeq, (await firstSeqFrom(db, range, fromAt)) - 1)
  const beforeSeq = query.beforeSeq ?? Infinity
  const endSeq = untilAt === null ? beforeSeq : Math.min(beforeSeq, await firstSeqFrom(db, range, untilAt))
  return { ...query, afterSeq, beforeSeq: endSeq === Infinity ? null : endSeq }
}

/** Number of the first event at or after that instant; one past the last if none exists. */
async function firstSeqFrom(
  db: Kysely<Schema>,
  { firstSeq, lastSeq }: EventRange,
  at: number,
): Promise<number> {
  let [low, high] = [firstSeq, lastSeq + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const row = await db.selectFrom('events').select('at').where('seq', '=', middle).executeTakeFirst()
    if (row !== undefined && row.at >= at) high = middle
    else low = middle + 1
  }
  return low
}
