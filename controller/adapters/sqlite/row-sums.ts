/**
 * A checksum in each row that decides something. SQLite keeps none for what is in its pages: a flipped bit in
 * a task's id is a task that is gone, and no check of the file's structure sees it (docs/decisions/0080).
 */
import { crc32 } from 'node:zlib'
import type Database from 'better-sqlite3'

/** Columns in the order in which they are summed. As released: rows were written with it. */
export const SUMMED_COLUMNS = {
  tasks: ['seq', 'id', 'state', 'owner', 'node_id', 'name', 'is_final', 'record'],
  nodes: ['id', 'ordinal', 'record'],
  groups: ['id', 'record'],
  config_revisions: ['revision', 'at', 'author', 'fields'],
  tokens: ['id', 'created_at', 'record'],
  submission_keys: ['seq', 'key', 'body', 'task_id', 'at'],
} as const

export type SummedTable = keyof typeof SUMMED_COLUMNS

type Value = string | number | null

export function rowSum(values: readonly Value[]): number {
  return crc32(JSON.stringify(values))
}

/** The row with its sum, for a statement that writes both. */
export function summed(values: readonly Value[]): readonly Value[] {
  return [...values, rowSum(values)]
}

/**
 * Reads every row of these tables, and compares them with their indexes; rows of earlier steps of the schema
 * have no checksums.
 * @returns the first that is not as it was written, as part of a sentence; null: all are.
 */
export function damagedRow(db: Database.Database): string | null {
  const hasSums =
    db.prepare("select 1 from pragma_table_info('tasks') where name = 'sum'").get() !== undefined
  for (const [table, columns] of Object.entries(SUMMED_COLUMNS)) {
    if (!hasSums) return null
    const found = db.pragma(`integrity_check(${table})`, { simple: true })
    if (found !== 'ok') return `table ${table}: ${String(found)}`
    const rows = db.prepare<[], Value[]>(`select ${columns.join()}, sum from "${table}"`).raw()
    for (const row of rows.iterate()) {
      const sum = row.pop()
      if (rowSum(row) !== sum)
        return `the row ${JSON.stringify(row[0])} of table ${table} is not as it was written`
    }
  }
  return null
}
