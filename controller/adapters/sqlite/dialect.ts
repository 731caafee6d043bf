/** Kysely on an open SQLite database. */
import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Schema } from '../sql/schema.ts'

export function kyselyOf(database: Database.Database): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: new SqliteDialect({ database }) })
}
