/**
 * A checksum in each row that affects decisions. SQLite keeps none for its pages: a flipped bit in a task's
 * id loses the task, and no structural check detects it (docs/decisions/0080).
 */
import { crc32 } from 'node:zlib'
import type Database from 'better-sqlite3'

/** Columns in the order of summation. Released: rows were written with it. */
export const SUMMED_COLUMNS = {
  tasks: ['seq', 'id', 'state', 'owner', 'node_id', 'name', 'is_final', 'record'],
  nodes: ['id', 'ordinal', 'record'],
  groups: ['id', 'record'],
  config_revisions: ['revision', 'at', 'author', 'fields'],
  tokens: ['id', 'created_at', 'record'],
  secrets: ['id', 'record'],
  submission_keys: ['seq', 'key', 'body', 'task_id', 'at'],
} as const

type Value = string | number | null

export function rowSum(values: readonly Value[]): number {
  return crc32(JSON.stringify(values))
}

/** The row with its checksum, for a statement that writes both. */
export function summed(values: readonly Value[]): readonly Value[] {
  return [...values, rowSum(values)]
}

/**
 * Reads every row of these tables and compares it with its indexes; rows of earlier schema versions have no
 * checksums.
 * @returns the first damaged row, as part of a sentence; null: none
 */
export function damagedRow(db: Database.Database): string | null {
  const hasSums = db.prepare("select 1 from pragma_table_info(?) where name = 'sum'")
  for (const [table, columns] of Object.entries(SUMMED_COLUMNS)) {
    if (hasSums.get(table) === undefined) continue
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
