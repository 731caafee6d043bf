/** Writes batches into the tables. The statements are compiled once by Kysely and run by better-sqlite3. */
import type Database from 'better-sqlite3'
import { MAX_CONFIG_REVISIONS } from '../../ports/store.ts'
import { kyselyOf } from './dialect.ts'
import { clockTables } from './clock-tables.ts'
import { createAccessWriter } from './access-writer.ts'
import { countDecisions, createDecisionLog, lastDecisionNumber } from './decision-log.ts'
import { createEventLog, readChainEnds } from './event-log.ts'
import { fencedFault } from '../sql/history.ts'
import { createHistoryWriter } from './history-writer.ts'
import type { WorkerSettings } from './messages.ts'
import { openRetentionClock, type HostTime } from '../sql/retention-clock.ts'
import type { BatchRows } from '../sql/rows.ts'
import { summed } from '../sql/row-sums.ts'
import type { FileMark } from '../sql/store-mark.ts'

type Retentions = Pick<WorkerSettings, 'retention' | 'decisionRetention'>
type Statement = Database.Statement<unknown[]>
type Compilable = { compile(): { readonly sql: string } }

/**
 * @returns a function that writes all batches in one transaction, in order, durable when it returns, and
 *   returns the new extent of the store. Throws SqliteError, or StoreFault if a controller with a later epoch
 *   has written; the transaction is then rolled back.
 */
export function createWriter(
  db: Database.Database,
  settings: Retentions,
  time: HostTime,
): (batches: readonly BatchRows[]) => Omit<FileMark, 'storeId'> {
  const statements = prepareAll(db)
  const writeAccess = createAccessWriter(db)
  const events = createEventLog(db, settings.retention)
  const writeHistory = createHistoryWriter(db)
  const decisions = createDecisionLog(db, settings.decisionRetention)
  const ages = { events: settings.retention.maxAgeMs, decisions: settings.decisionRetention.maxAgeMs }
  const clock = openRetentionClock(clockTables(db), ages, time)
  let ends = readChainEnds(db)
  let keptDecisions = countDecisions(db)
  let lastDecision = lastDecisionNumber(db)
  const writeAll = db.transaction((batches: readonly BatchRows[]) => {
    for (const batch of batches) {
      write(statements, batch)
      if (batch.access !== null) writeAccess(batch.access)
    }
    const commits = writeHistory(batches)
    const byAge = clock.tick({ events: ends.headSeq - ends.prunedSeq, decisions: keptDecisions })
    const newEvents = batches.flatMap((batch) => batch.events)
    const newDecisions = batches.flatMap((batch) => batch.decisions)
    const written = {
      commits,
      events: events.write(ends, newEvents, byAge.events),
      decisions: decisions.write(keptDecisions, newDecisions, byAge.decisions),
      lastDecision: newDecisions.at(-1)?.[0] ?? lastDecision,
    }
    clock.settle(
      { events: written.events.removedByAge, decisions: written.decisions.removedByAge },
      { eventSeq: written.events.ends.headSeq, decisionNumber: written.lastDecision },
    )
    return written
  })
  return (batches) => {
    const written = writeAll.immediate(batches)
    ends = written.events.ends
    keptDecisions = written.decisions.kept
    lastDecision = written.lastDecision
    return {
      epoch: batches.at(-1)?.marks[0] ?? 0,
      eventSeq: ends.headSeq,
      chain: ends.headHash,
      commits: written.commits,
    }
  }
}

function write(statements: Statements, batch: BatchRows): void {
  // First: an earlier epoch's batch must not even be tried against later rows.
  if (statements.putMarks.run(batch.marks).changes === 0) throw fencedFault(batch.marks[0])
  for (const row of batch.tasks) statements.putTask.run(summed(row))
  for (const id of batch.forgottenNodeIds) statements.deleteNode.run(id)
  for (const row of batch.nodes) statements.putNode.run(summed(row))
  for (const id of batch.deletedGroupIds) statements.deleteGroup.run(id)
  for (const row of batch.groups) statements.putGroup.run(summed(row))
  if (batch.config !== null) {
    statements.putConfig.run(summed(batch.config))
    statements.pruneConfigs.run(batch.config[0] - MAX_CONFIG_REVISIONS)
  }
  if (batch.submissionKeys === null) return
  for (const row of batch.submissionKeys.added) statements.addKey.run(summed(row))
  statements.forgetKeys.run(batch.submissionKeys.keptFromSeq)
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
  /** Removes the keys before this number. */
  readonly forgetKeys: Statement
  readonly putMarks: Statement
}

/**
 * The keys of each `values` are in the order of the row's values (rows.ts); the values here are never used.
 */
function prepareAll(db: Database.Database): Statements {
  const q = kyselyOf(db)
  const prepare = (query: Compilable) => db.prepare<unknown[]>(query.compile().sql)
  return {
    putTask: prepare(
      q
        .insertInto('tasks')
        .values({
          seq: 0,
          id: '',
          state: '',
          owner: '',
          node_id: '',
          name: '',
          is_final: 0,
          record: '',
          sum: 0,
        })
        .onConflict((at) =>
          at.column('id').doUpdateSet(({ ref }) => ({
            state: ref('excluded.state'),
            owner: ref('excluded.owner'),
            node_id: ref('excluded.node_id'),
            name: ref('excluded.name'),
            is_final: ref('excluded.is_final'),
            record: ref('excluded.record'),
            sum: ref('excluded.sum'),
          })),
        ),
    ),
    putNode: prepare(q.replaceInto('nodes').values({ id: '', ordinal: 0, record: '', sum: 0 })),
    deleteNode: prepare(q.deleteFrom('nodes').where('id', '=', '')),
    putGroup: prepare(q.replaceInto('groups').values({ id: '', record: '', sum: 0 })),
    deleteGroup: prepare(q.deleteFrom('groups').where('id', '=', '')),
    putConfig: prepare(
      q.replaceInto('config_revisions').values({ revision: 0, at: 0, author: '', fields: '', sum: 0 }),
    ),
    pruneConfigs: prepare(q.deleteFrom('config_revisions').where('revision', '<=', 0)),
    addKey: prepare(
      q.replaceInto('submission_keys').values({ seq: 0, key: '', body: '', task_id: '', at: 0, sum: 0 }),
    ),
    forgetKeys: prepare(q.deleteFrom('submission_keys').where('seq', '<', 0)),
    putMarks: preparePutMarks(db),
  }
}

/** Changes nothing if a later epoch has written. */
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
