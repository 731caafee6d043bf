/** Keeps a bounded number of decisions: the oldest are removed in the transaction that adds new ones. */
import type Database from 'better-sqlite3'
import type { DecisionRow } from '../sql/decisions.ts'
import { EXTRA_PRUNED, pruneDecisions, type DecisionRetention } from '../sql/pruning.ts'
import type { AgeAllowance } from '../sql/retention-clock.ts'

export interface DecisionLog {
  /**
   * Call within a transaction. @param kept result of the previous call, after its transaction was committed
   */
  write(kept: number, rows: readonly DecisionRow[], byAge: AgeAllowance): WrittenDecisions
}

export interface WrittenDecisions {
  readonly kept: number
  readonly removedByAge: number
}

export function countDecisions(db: Database.Database): number {
  return db.prepare<unknown[], { count: number }>('select count(*) as count from decisions').get()?.count ?? 0
}

export function lastDecisionNumber(db: Database.Database): number {
  return db.prepare<[], number | null>('select max(number) from decisions').pluck().get() ?? 0
}

export function createDecisionLog(db: Database.Database, { maxDecisions }: DecisionRetention): DecisionLog {
  const add = db.prepare<unknown[]>(
    'insert into decisions (number, at, kind, node_id, record) values (?, ?, ?, ?, ?)',
  )
  const addTask = db.prepare<unknown[]>('insert into decision_tasks (task_id, number) values (?, ?)')
  const oldest = db.prepare<[number], number>('select number from decisions order by number limit ?').pluck()
  const remove = db.prepare<unknown[]>('delete from decisions where number <= ?')
  const removeTasks = db.prepare<unknown[]>('delete from decision_tasks where number <= ?')

  function prune(kept: number, added: number, byAge: AgeAllowance): WrittenDecisions {
    const numbers = oldest.iterate(added + EXTRA_PRUNED)
    const { upTo, ...written } = pruneDecisions(kept, numbers, maxDecisions, byAge)
    if (upTo > 0) {
      remove.run(upTo)
      removeTasks.run(upTo)
    }
    return written
  }

  return {
    write(kept, rows, byAge) {
      for (const [number, at, kind, nodeId, record, taskIds] of rows) {
        add.run(number, at, kind, nodeId, record)
        for (const taskId of taskIds) addTask.run(taskId, number)
      }
      const mayPrune = rows.length > 0 || byAge.rows > 0
      return mayPrune ? prune(kept + rows.length, rows.length, byAge) : { kept, removedByAge: 0 }
    },
  }
}
