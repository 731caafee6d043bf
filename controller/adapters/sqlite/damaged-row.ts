/** Finds a row that is not as it was written. */
import type Database from 'better-sqlite3'
import { rowSum, SUMMED_COLUMNS, type Value } from '../sql/row-sums.ts'

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
