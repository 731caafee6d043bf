/** Decisions as rows, and their queries, each with an index. */
import { sql, type Kysely } from 'kysely'
import { tasksOf } from '../decision-pick.ts'
import type { Decision } from '../../model/decision.ts'
import type { DecisionQuery } from '../../ports/store.ts'
import type { Schema } from './schema.ts'

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

export function decodeDecision(record: string): Decision {
  return JSON.parse(record) as Decision
}

export async function decisionByNumber(db: Kysely<Schema>, number: number): Promise<string | null> {
  const row = await db
    .selectFrom('decisions')
    .select('record')
    .where('number', '=', number)
    .executeTakeFirst()
  return row?.record ?? null
}

export async function decisions(db: Kysely<Schema>, query: DecisionQuery): Promise<string[]> {
  const rows = await decisionsQuery(db, query).execute()
  return rows.map(({ record }) => record)
}

/** Uses an index: by task, otherwise node, kind or number; other conditions filter its rows. */
export function decisionsQuery(db: Kysely<Schema>, query: DecisionQuery) {
  const { taskId, nodeId, kind, limit } = query
  if (taskId !== null) return decisionsOfTaskQuery(db, taskId, query)
  let rows = db.selectFrom('decisions as d').select('d.record')
  if (nodeId !== null) rows = rows.where('d.node_id', '=', nodeId)
  if (kind !== null) rows = rows.where(nodeId === null ? sql.ref('d.kind') : unindexed('d.kind'), '=', kind)
  const { afterNumber, beforeNumber } = query
  if (afterNumber !== null) rows = rows.where('d.number', '>', afterNumber)
  else if (beforeNumber !== null) rows = rows.where('d.number', '<', beforeNumber)
  return rows.orderBy('d.number', afterNumber === null ? 'desc' : 'asc').limit(limit)
}

function decisionsOfTaskQuery(db: Kysely<Schema>, taskId: string, query: DecisionQuery) {
  const { afterNumber, beforeNumber, nodeId, kind, limit } = query
  let rows = db
    .selectFrom('decision_tasks as t')
    .innerJoin('decisions as d', 'd.number', 't.number')
    .select('d.record')
    .where('t.task_id', '=', taskId)
  if (nodeId !== null) rows = rows.where(unindexed('d.node_id'), '=', nodeId)
  if (kind !== null) rows = rows.where(unindexed('d.kind'), '=', kind)
  if (afterNumber !== null) rows = rows.where('t.number', '>', afterNumber)
  else if (beforeNumber !== null) rows = rows.where('t.number', '<', beforeNumber)
  return rows.orderBy('t.number', afterNumber === null ? 'desc' : 'asc').limit(limit)
}

/** An expression that no index covers, so that the planner does not choose the index of its column. */
function unindexed(column: string) {
  return sql<string>`${sql.ref(column)} || ''`
}
