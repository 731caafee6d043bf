/** Puts batches into the tables. The statements are Kysely's, compiled once; running them costs what better-sqlite3 costs. */
import type Database from 'better-sqlite3'
import { MAX_CONFIG_REVISIONS, StoreFault } from '../../ports/store.ts'
import { kyselyOf } from './dialect.ts'
import { createAccessWriter } from './access-writer.ts'
import { countDecisions, createDecisionLog } from './decision-log.ts'
import { createEventLog, readChainEnds } from './event-log.ts'
import type { WorkerSettings } from './messages.ts'
import type { BatchRows } from './rows.ts'

type Retentions = Pick<WorkerSettings, 'retention' | 'decisionRetention'>
type Statement = Database.Statement<unknown[]>
type Compilable = { compile(): { readonly sql: string } }

/**
 * @param now milliseconds since the Unix epoch: the age of events is counted from it.
 * @returns writes all batches in one transaction, in their order; it is on disk when the call returns.
 *   Throws SqliteError, or StoreFault when a controller with a later epoch has written; nothing of the batches is there then.
 */
export function createWriter(db: Database.Database, settings: Retentions, now: () => number): (batches: readonly BatchRows[]) => void {
  const statements = prepareAll(db)
  const writeAccess = createAccessWriter(db)
  const events = createEventLog(db, settings.retention)
  const decisions = createDecisionLog(db, settings.decisionRetention)
  let ends = readChainEnds(db)
  let keptDecisions = countDecisions(db)
  const writeAll = db.transaction((batches: readonly BatchRows[]) => {
    for (const batch of batches) {
      write(statements, batch)
      if (batch.access !== null) writeAccess(batch.access)
    }
    const at = now()
    return {
      ends: events.write(
        ends,
        batches.flatMap((batch) => batch.events),
        at,
      ),
      keptDecisions: decisions.write(
        keptDecisions,
        batches.flatMap((batch) => batch.decisions),
        at,
      ),
    }
  })
  return (batches) => {
    ;({ ends, keptDecisions } = writeAll.immediate(batches))
  }
}

function write(statements: Statements, batch: BatchRows): void {
  // Ahead of everything else: an earlier epoch's batch must not even be tried against later rows.
  if (statements.putMarks.run(batch.marks).changes === 0) throw new StoreFault(fenced(batch.marks[0]))
  for (const row of batch.tasks) statements.putTask.run(row)
  for (const id of batch.forgottenNodeIds) statements.deleteNode.run(id)
  for (const row of batch.nodes) statements.putNode.run(row)
  for (const id of batch.deletedGroupIds) statements.deleteGroup.run(id)
  for (const row of batch.groups) statements.putGroup.run(row)
  if (batch.config !== null) {
    statements.putConfig.run(batch.config)
    statements.pruneConfigs.run(batch.config[0] - MAX_CONFIG_REVISIONS)
  }
  if (batch.submissionKeys === null) return
  for (const row of batch.submissionKeys.added) statements.addKey.run(row)
  statements.forgetKeys.run(batch.submissionKeys.keptFromSeq)
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
  readonly pruneConfigs: Statement
  readonly addKey: Statement
  /** Those before this number. */
  readonly forgetKeys: Statement
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
    pruneConfigs: prepare(q.deleteFrom('config_revisions').where('revision', '<=', 0)),
    addKey: prepare(q.replaceInto('submission_keys').values({ seq: 0, key: '', body: '', task_id: '', at: 0 })),
    forgetKeys: prepare(q.deleteFrom('submission_keys').where('seq', '<', 0)),
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
