/** The queries, each with an index (test/integration/sqlite-queries.test.ts checks SQLite's plans). */
import { type Kysely, sql } from 'kysely'
import { isFinal } from '../../model/task.ts'
import { MIN_TASK_ID_PREFIX } from '../../../protocol/limits.ts'
import { type TaskState } from '../../../protocol/units.ts'
import type { AuditQuery, FinishedQuery, RevisionQuery } from '../../ports/store.ts'
import { readHistory } from './history.ts'
import type { ConfigRow, StoredRows } from './rows.ts'
import type { Schema } from './schema.ts'

/** Everything a controller starts from, as of one instant. */
export function loadRows(db: Kysely<Schema>): Promise<StoredRows> {
  // SQLite reads a snapshot in every transaction, and ignores the level.
  return db.transaction().setIsolationLevel('repeatable read').execute(loadRowsIn)
}

/** @param at a transaction that reads a snapshot */
export async function loadRowsIn(at: Kysely<Schema>): Promise<StoredRows> {
  const openTasks = await openTasksQuery(at).execute()
  const nodes = await at.selectFrom('nodes').select('record').orderBy('ordinal').orderBy('id').execute()
  const groups = await at.selectFrom('groups').select('record').orderBy('id').execute()
  const marks = await at.selectFrom('marks').selectAll().executeTakeFirst()
  const tokens = await at.selectFrom('tokens').select('record').orderBy('created_at').orderBy('id').execute()
  const secrets = await at.selectFrom('secrets').select('record').orderBy('id').execute()
  const lastAudit = await at
    .selectFrom('audits')
    .select('seq')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  const [config] = await configRevisions(at, { before: null, limit: 1 })
  const keys = await at.selectFrom('submission_keys').selectAll().orderBy('seq').execute()
  return {
    openTasks: openTasks.map((row) => row.record),
    nodes: nodes.map((row) => row.record),
    groups: groups.map((row) => row.record),
    config: config ?? null,
    tokens: tokens.map((row) => row.record),
    secrets: secrets.map((row) => row.record),
    lastAuditSeq: lastAudit?.seq ?? 0,
    submissionKeys: keys.map((row) => [row.seq, row.key, row.body, row.task_id, row.at] as const),
    marks:
      marks === undefined
        ? null
        : ([marks.epoch, marks.next_task_seq, marks.next_event_seq, marks.next_decision] as const),
    ...(await readHistory(at)),
    finishedCounts: await finishedCountsQuery(at).execute(),
  }
}

export async function taskById(db: Kysely<Schema>, id: string): Promise<string | null> {
  const row = await db.selectFrom('tasks').select('record').where('id', '=', id).executeTakeFirst()
  return row?.record ?? null
}

/** One query per state, each in the order of its index; the newest of all form the page. */
export async function finishedTasks(db: Kysely<Schema>, query: FinishedQuery): Promise<string[]> {
  const states = [...new Set(query.states)].filter(isFinal)
  const pages = await Promise.all(states.map((state) => finishedTasksQuery(db, state, query).execute()))
  return pages
    .flat()
    .sort((a, b) => (query.isOldestFirst ? a.seq - b.seq : b.seq - a.seq))
    .slice(0, query.limit)
    .map((row) => row.record)
}

/** Newest first. The table is bounded (writer.ts), so filters may scan it. */
export async function audits(db: Kysely<Schema>, query: AuditQuery): Promise<string[]> {
  const rows = await auditsQuery(db, query).execute()
  return rows.map((row) => row.record)
}

/** Newest first. */
export async function configRevisions(
  db: Kysely<Schema>,
  { before, limit }: RevisionQuery,
): Promise<ConfigRow[]> {
  let query = db.selectFrom('config_revisions').selectAll()
  if (before !== null) query = query.where('revision', '<', before)
  const rows = await query.orderBy('revision', 'desc').limit(limit).execute()
  return rows.map((row) => [row.revision, row.at, row.author, row.fields])
}

export function openTasksQuery(db: Kysely<Schema>) {
  return db.selectFrom('tasks').select('record').where('is_final', '=', sql.lit(0)).orderBy('seq')
}

export function finishedCountsQuery(db: Kysely<Schema>) {
  return db
    .selectFrom('tasks')
    .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
    .where('is_final', '=', sql.lit(1))
    .groupBy('state')
}

export function finishedTasksQuery(db: Kysely<Schema>, state: TaskState, wanted: FinishedQuery) {
  const { owner, nameContains, nodeId, beforeSeq, afterSeq, isOldestFirst, limit } = wanted
  let query = db
    .selectFrom('tasks')
    .select(['seq', 'record'])
    .where('is_final', '=', sql.lit(1))
    .where('state', '=', state)
  if (owner !== null) query = query.where('owner', '=', owner)
  if (nodeId !== null) query = query.where('node_id', '=', nodeId)
  if (beforeSeq !== null) query = query.where('seq', '<', beforeSeq)
  if (afterSeq !== null) query = query.where('seq', '>', afterSeq)
  if (nameContains !== null) {
    // Same rule as `isFoundBy`. instr compares characters; `like` would interpret wildcards.
    query = query.where(({ eb, fn, val }) =>
      eb.or([
        eb(fn<number>('instr', ['name', val(nameContains)]), '>', 0),
        nameContains.length < MIN_TASK_ID_PREFIX
          ? eb('id', '=', nameContains)
          : eb(fn<number>('instr', ['id', val(nameContains)]), '=', 1),
      ]),
    )
  }
  return query.orderBy('seq', isOldestFirst ? 'asc' : 'desc').limit(limit)
}

function auditsQuery(
  db: Kysely<Schema>,
  { beforeSeq, actor, action, outcome, targetContains, since, until, limit }: AuditQuery,
) {
  let query = db.selectFrom('audits').select('record')
  if (beforeSeq !== null) query = query.where('seq', '<', beforeSeq)
  if (actor !== null) query = query.where('actor', '=', actor)
  if (action !== null) query = query.where('action', '=', action)
  if (outcome !== null) query = query.where('outcome', '=', outcome)
  if (targetContains !== null)
    query = query.where(({ fn, val }) => fn<number>('instr', ['target', val(targetContains)]), '>', 0)
  if (since !== null) query = query.where('at', '>=', since)
  if (until !== null) query = query.where('at', '<', until)
  return query.orderBy('seq', 'desc').limit(limit)
}
