/** Recomputes the checksum of every row after a schema step has changed rows. */
import { sql, type Kysely } from 'kysely'
import { rowSum, SUMMED_COLUMNS } from '../sql/row-sums.ts'

/** Number of rows read and written at a time. */
const ROWS_AT_A_TIME = 5_000

type Row = Readonly<Record<string, string | number | null>>

/**
 * Within the transaction of the step, so that rows and checksums always agree. A table whose rows have
 * no checksums, or that is made by a later step, is left as it is.
 */
export async function sealRows<S>(db: Kysely<S>): Promise<void> {
  for (const [table, columns] of Object.entries(SUMMED_COLUMNS))
    if (await hasSums(db, table)) await sealTable(db, table, columns)
}

async function hasSums<S>(db: Kysely<S>, table: string): Promise<boolean> {
  const { rows } = await sql`select 1 from pragma_table_info(${table}) where name = 'sum'`.execute(db)
  return rows.length > 0
}

async function sealTable<S>(db: Kysely<S>, name: string, columns: readonly string[]): Promise<void> {
  const table = sql.table(name)
  const names = sql.join(columns.map((column) => sql.ref(column)))
  for (let last = -1; ;) {
    const { rows } = await sql<Row>`select rowid as number, ${names} from ${table}
      where rowid > ${last} order by rowid limit ${sql.lit(ROWS_AT_A_TIME)}`.execute(db)
    if (rows.length === 0) return
    const sums = rows.map((row) => [row['number'], rowSum(columns.map((column) => row[column] ?? null))])
    last = Number(rows.at(-1)?.['number'])
    await sql`update ${table} set sum = entry.value ->> 1 from json_each(${JSON.stringify(sums)}) as entry
      where ${table}.rowid = entry.value ->> 0`.execute(db)
  }
}
