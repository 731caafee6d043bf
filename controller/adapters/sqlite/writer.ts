/** Puts batches into the tables. The statements are Kysely's, compiled once; running them costs what better-sqlite3 costs. */
import type Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { kyselyOf } from './dialect.ts'
import { createAccessWriter } from './access-writer.ts'
import type { BatchRows, EventRow } from './rows.ts'

/** Besides as many events as came in, a commit removes at most this many old ones: a lowered limit is reached step by step. */
const EXTRA_PRUNED_EVENTS = 1000

type Statement = Database.Statement<unknown[]>
type Compilable = { compile(): { readonly sql: string } }

/**
 * @param retainEvents how many of the newest events are kept.
 * @returns writes all batches in one transaction, in their order; it is on disk when the call returns.
 *   Throws SqliteError, or StoreFault when a controller with a later epoch has written; nothing of the batches is there then.
 */
export function createWriter(db: Database.Database, retainEvents: number): (batches: readonly BatchRows[]) => void {
  const statements = prepareAll(db)
  const pruneEvents = createPruning(db, retainEvents)
  const writeAccess = createAccessWriter(db)
  const writeAll = db.transaction((batches: readonly BatchRows[]) => {
    for (const batch of batches) {
      write(statements, batch)
      if (batch.access !== null) writeAccess(batch.access)
    }
    pruneEvents(batches)
  })
  return (batches) => writeAll.immediate(batches)
}

function write(statements: Statements, batch: BatchRows): void {
  // Ahead of everything else: an earlier epoch's batch must not even be tried against later rows.
  if (statements.putMarks.run(batch.marks).changes === 0) throw new StoreFault(fenced(batch.marks[0]))
  for (const row of batch.tasks) statements.putTask.run(row)
  for (const id of batch.forgottenNodeIds) statements.deleteNode.run(id)
  for (const row of batch.nodes) statements.putNode.run(row)
  for (const id of batch.deletedGroupIds) statements.deleteGroup.run(id)
  for (const row of batch.groups) statements.putGroup.run(row)
  if (batch.config !== null) statements.putConfig.run(batch.config)
  for (const row of batch.events) statements.addEvent.run(row)
}

function fenced(epoch: number): string {
  return `a controller with a later epoch than ${epoch} has taken over: this one must stop`
}

interface Statements {
  readonly putTask: Statement
  readonly putNode: Statement
  readonly deleteNode: Statement
  readonly putGroup: Statement
  readonly deleteGroup: Statement
  readonly putConfig: Statement
  readonly addEvent: Statement
  readonly putMarks: Statement
}

/** The keys of each `values` stand in the order of the row's values (rows.ts); what they hold here is never used. */
function prepareAll(db: Database.Database): Statements {
  const q = kyselyOf(db)
  const prepare = (query: Compilable) => db.prepare<unknown[]>(query.compile().sql)
  return {
    putTask: prepare(
      q
        .insertInto('tasks')
        .values({ seq: 0, id: '', state: '', owner: '', node_id: '', name: '', is_final: 0, record: '' })
        .onConflict((at) =>
          at.column('id').doUpdateSet(({ ref }) => ({
            state: ref('excluded.state'),
            owner: ref('excluded.owner'),
            node_id: ref('excluded.node_id'),
            name: ref('excluded.name'),
            is_final: ref('excluded.is_final'),
            record: ref('excluded.record'),
          })),
        ),
    ),
    putNode: prepare(q.replaceInto('nodes').values({ id: '', ordinal: 0, record: '' })),
    deleteNode: prepare(q.deleteFrom('nodes').where('id', '=', '')),
    putGroup: prepare(q.replaceInto('groups').values({ id: '', record: '' })),
    deleteGroup: prepare(q.deleteFrom('groups').where('id', '=', '')),
    putConfig: prepare(q.replaceInto('config_revisions').values({ revision: 0, at: 0, author: '', fields: '' })),
    addEvent: prepare(q.insertInto('events').values({ seq: 0, at: 0, kind: '', task_id: '', node_id: '', caused_by: 0, data: '' })),
    putMarks: preparePutMarks(db),
  }
}

/** Changes nothing when a later epoch has written. */
function preparePutMarks(db: Database.Database): Statement {
  const query = kyselyOf(db)
    .insertInto('marks')
    .values(({ lit }) => ({ id: lit(1), epoch: 0, next_task_seq: 0, next_event_seq: 0, next_decision: 0 }))
    .onConflict((at) =>
      at
        .column('id')
        .doUpdateSet(({ ref }) => ({
          epoch: ref('excluded.epoch'),
          next_task_seq: ref('excluded.next_task_seq'),
          next_event_seq: ref('excluded.next_event_seq'),
          next_decision: ref('excluded.next_decision'),
        }))
        .whereRef('excluded.epoch', '>=', 'marks.epoch'),
    )
  return db.prepare<unknown[]>(query.compile().sql)
}

/** Removes the oldest events past the limit, in the transaction that adds new ones, so that the file is bounded at every moment. */
function createPruning(db: Database.Database, retainEvents: number): (batches: readonly BatchRows[]) => void {
  const remove = db.prepare<unknown[]>(kyselyOf(db).deleteFrom('events').where('seq', '<', 0).compile().sql)
  let oldestSeq: number | null = db.prepare<unknown[], number | null>('select min(seq) from events').pluck().get() ?? null
  return (batches) => {
    const added = batches.reduce((sum, batch) => sum + batch.events.length, 0)
    const newest = newestEvent(batches)
    if (newest === undefined) return
    oldestSeq ??= newest[0] - added + 1
    const firstKept = Math.min(newest[0] - retainEvents + 1, oldestSeq + added + EXTRA_PRUNED_EVENTS)
    if (firstKept <= oldestSeq) return
    remove.run(firstKept)
    oldestSeq = firstKept
  }
}

function newestEvent(batches: readonly BatchRows[]): EventRow | undefined {
  return batches.findLast((batch) => batch.events.length > 0)?.events.at(-1)
}
