/** Keeps a bounded number of decisions: the oldest are removed in the transaction that adds new ones. */
import type Database from 'better-sqlite3'
import { tasksOf } from '../decision-pick.ts'
import type { Decision } from '../../model/decision.ts'
import type { DecisionQuery } from '../../ports/store.ts'
import type { AgeAllowance } from './retention-clock.ts'

export interface DecisionRetention {
  readonly maxDecisions: number
  readonly maxAgeMs: number
}

/**
 * Besides as many as it adds, a commit removes at most this number of old ones: a lowered limit is reached
 * gradually.
 */
const EXTRA_PRUNED = 1000

/** `taskIds`: the tasks by which it is found. */
export type DecisionRow = readonly [
  number: number,
  at: number,
  kind: string,
  nodeId: string,
  record: string,
  taskIds: readonly string[],
]

export function encodeDecision(decision: Decision): DecisionRow {
  const { number, at, kind, nodeId } = decision
  return [number, at, kind, nodeId, JSON.stringify(decision), [...tasksOf(decision)]]
}

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
    let [removed, removedByAge, upTo] = [0, 0, 0]
    for (const number of oldest.iterate(added + EXTRA_PRUNED)) {
      if (kept - removed <= maxDecisions) {
        if (number > byAge.upTo || removedByAge >= byAge.rows) break
        removedByAge += 1
      }
      removed += 1
      upTo = number
    }
    if (removed === 0) return { kept, removedByAge }
    remove.run(upTo)
    removeTasks.run(upTo)
    return { kept: kept - removed, removedByAge }
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

export function readDecision(db: Database.Database, number: number): string | null {
  const row = db
    .prepare<[number], { record: string }>('select record from decisions where number = ?')
    .get(number)
  return row?.record ?? null
}

/** Each query uses an index: by task, otherwise node, kind or number; other conditions filter its rows. */
export function readDecisions(db: Database.Database, query: DecisionQuery): string[] {
  const { sql, values } = decisionsSql(query)
  return db
    .prepare<unknown[], { record: string }>(sql)
    .all(...values)
    .map(({ record }) => record)
}

export function decisionsSql(query: DecisionQuery): {
  readonly sql: string
  readonly values: readonly (string | number)[]
} {
  const { afterNumber, beforeNumber, taskId, nodeId, kind, limit } = query
  const [conditions, values]: [string[], (string | number)[]] = [[], []]
  const where = (condition: string, value: string | number): void => {
    conditions.push(condition)
    values.push(value)
  }
  const number = taskId === null ? 'd.number' : 't.number'
  if (taskId !== null) where('t.task_id = ?', taskId)
  if (nodeId !== null) where(taskId === null ? 'd.node_id = ?' : '+d.node_id = ?', nodeId)
  if (kind !== null) where(taskId === null && nodeId === null ? 'd.kind = ?' : '+d.kind = ?', kind)
  if (afterNumber !== null) where(`${number} > ?`, afterNumber)
  else if (beforeNumber !== null) where(`${number} < ?`, beforeNumber)
  const from =
    taskId === null ? 'decisions d' : 'decision_tasks t cross join decisions d on d.number = t.number'
  const filter = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const order = afterNumber === null ? 'desc' : 'asc'
  return {
    sql: `select d.record as record from ${from}${filter} order by ${number} ${order} limit ?`,
    values: [...values, limit],
  }
}

export function decodeDecision(record: string): Decision {
  return JSON.parse(record) as Decision
}
