/**
 * Copies a store between PostgreSQL and a SQLite file with the current schema: backups, restores, checks and
 * the migration are one code. Tables and columns are the same in both, which a test checks.
 */
import Database from 'better-sqlite3'
import type pg from 'pg'
import { STORE_KINDS } from '../../model/store-kind.ts'
import { kyselyOf } from '../sqlite/dialect.ts'
import { migrate as migrateFile } from '../sqlite/migrations.ts'
import { keepKind as keepKindInFile } from '../sqlite/store-kind.ts'
import { rowSum, SUMMED_COLUMNS, type Value } from '../sql/row-sums.ts'
import { keepKind, readKind } from './kind.ts'
import { storable } from './merged-records.ts'

/** Rows that are read and written at a time. */
const ROWS_AT_A_TIME = 2_000
/** Each database keeps the steps that it took itself. */
const OF_ITS_OWN = 'schema_version'

type Cell = Value | Uint8Array
type Row = Record<string, Cell>

/** Creates the file with the store as of one instant. */
export async function copyToFile(client: pg.ClientBase, file: string, at: number): Promise<void> {
  const db = new Database(file)
  try {
    db.pragma('journal_mode = off')
    await migrateFile(kyselyOf(db), file, at)
    await client.query('begin isolation level repeatable read read only')
    for (const table of tablesOf(db)) await copyTable(client, db, table)
    const kind = await readKind(client)
    await client.query('commit')
    if (kind !== null) keepKindInFile(db, kind)
  } finally {
    db.close()
  }
}

async function copyTable(client: pg.ClientBase, db: Database.Database, table: string): Promise<void> {
  const columns = columnsOf(db, table)
  const names = columns.map(quoted).join()
  const insert = db.prepare(
    `insert into ${quoted(table)} (${names}) values (${columns.map(() => '?').join()})`,
  )
  const insertAll = db.transaction((rows: readonly Row[]) => {
    for (const row of rows) insert.run(...columns.map((column) => row[column]))
  })
  db.exec(`delete from ${quoted(table)}`)
  await client.query(`declare rows no scroll cursor for select ${names} from headroom.${quoted(table)}`)
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${ROWS_AT_A_TIME} from rows`)
    if (rows.length === 0) break
    insertAll(rows)
  }
  await client.query('close rows')
}

/**
 * Copies within a transaction, into empty tables of the current schema.
 * @param file with the current schema
 */
export async function copyFromFile(file: string, client: pg.ClientBase): Promise<void> {
  const db = new Database(file, { readonly: true, fileMustExist: true })
  try {
    for (const table of tablesOf(db)) {
      await client.query(`delete from headroom.${quoted(table)}`)
      for (const rows of chunksOf(db, table)) await insertRows(client, table, columnsOf(db, table), rows)
    }
    const kind = STORE_KINDS[(db.pragma('user_version', { simple: true }) as number) - 1]
    if (kind !== undefined) await keepKind(client, kind)
  } finally {
    db.close()
  }
}

async function insertRows(
  client: pg.ClientBase,
  table: string,
  columns: readonly string[],
  rows: readonly Row[],
): Promise<void> {
  const names = columns.map(quoted).join()
  await client.query(
    `insert into headroom.${quoted(table)} (${names})
     select ${names} from json_populate_recordset(null::headroom.${quoted(table)}, $1)`,
    [JSON.stringify(rows.map((row) => storableRow(table, row)))],
  )
}

function* chunksOf(db: Database.Database, table: string): Generator<readonly Row[]> {
  let chunk: Row[] = []
  for (const row of db.prepare<[], Row>(`select * from ${quoted(table)}`).iterate()) {
    chunk.push(row)
    if (chunk.length < ROWS_AT_A_TIME) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}

/** Bytes as PostgreSQL reads them; a text that it does not take, with its checksum. */
function storableRow(table: string, row: Row): Row {
  const cells = Object.entries(row).map(([column, cell]): [string, Cell] => [
    column,
    cell instanceof Uint8Array ? `\\x${Buffer.from(cell).toString('hex')}` : storable(cell),
  ])
  const stored = Object.fromEntries(cells)
  const summed: readonly string[] | undefined = SUMMED_COLUMNS[table as keyof typeof SUMMED_COLUMNS]
  if (summed?.some((column) => stored[column] !== row[column]) === true)
    stored['sum'] = rowSum(summed.map((column) => stored[column] as Value))
  return stored
}

function tablesOf(db: Database.Database): readonly string[] {
  return db
    .prepare<[], string>("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    .pluck()
    .all()
    .filter((name) => name !== OF_ITS_OWN)
}

function columnsOf(db: Database.Database, table: string): readonly string[] {
  return db.prepare<[string], string>('select name from pragma_table_info(?)').pluck().all(table)
}

function quoted(name: string): string {
  return `"${name}"`
}
