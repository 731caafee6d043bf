/** The schema of PostgreSQL: the base, then steps, numbered as those of SQLite. Forward only. */
import { hash } from 'node:crypto'
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import { BASE_SCHEMA, BASE_VERSION } from './base-schema.ts'
import { FUNCTIONS } from './commit-function.ts'
import { FILES_SCHEMA } from './files-schema.ts'
import { LEASE_SCHEMA } from './lease-schema.ts'
import { SCHEMA } from './session.ts'

export interface Step {
  /** One above the one before; SQLite's step with this number makes the same tables and columns. */
  readonly version: number
  readonly name: string
  readonly sql: string
}

const STEPS: readonly Step[] = []

/** The schema version that this program writes. */
export const POSTGRES_SCHEMA_VERSION = BASE_VERSION + STEPS.length

/** 0: no tables. Only reads. @throws StoreFault if the schema is another program's, or newer */
export async function schemaVersion(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ tables: number; ours: boolean }>(
    `select count(*)::int as tables, coalesce(bool_or(tablename = 'schema_version'), false) as ours
     from pg_catalog.pg_tables where schemaname = $1`,
    [SCHEMA],
  )
  const { tables = 0, ours = false } = rows[0] ?? {}
  if (tables === 0) return 0
  if (!ours)
    throw new StoreFault(
      `the database has a schema ${SCHEMA} of another program (no table schema_version): use another ` +
        'database',
    )
  const found = await client.query<{ version: number }>('select max(version) as version from schema_version')
  const version = found.rows[0]?.version ?? 0
  if (version > POSTGRES_SCHEMA_VERSION)
    throw new StoreFault(
      `the database was written by a newer Headroom (schema ${version}; this version supports up to ` +
        `${POSTGRES_SCHEMA_VERSION}): start that version, or restore a backup made before the upgrade`,
    )
  return version
}

/** Brings the schema to the last step, in one transaction, and renews its functions. @param at wall clock */
export function migrate(client: pg.ClientBase, from: number, at: number): Promise<void> {
  return inTransaction(client, () => migrateWithin(client, from, at))
}

/** The same within a transaction. */
export async function migrateWithin(client: pg.ClientBase, from: number, at: number): Promise<void> {
  const add = (version: number, name: string) =>
    client.query('insert into headroom.schema_version values ($1, $2, $3)', [version, name, at])
  if (from === 0) {
    await client.query(BASE_SCHEMA)
    await add(BASE_VERSION, 'base')
    await client.query('insert into headroom.retention_clock values (1, $1, $1, 0, 0)', [at])
  }
  for (const step of STEPS.filter(({ version }) => version > from)) {
    await client.query(step.sql)
    await add(step.version, step.name)
  }
  await renewFunctions(client)
}

/** They are those of the program that leads. Those of the same program are left as they are. */
async function renewFunctions(client: pg.ClientBase): Promise<void> {
  const texts = [...FUNCTIONS, ...LEASE_SCHEMA, ...FILES_SCHEMA]
  const digest = `functions ${hash('sha256', texts.join('\n'), 'hex')}`
  const { rows } = await client.query<{ comment: string | null }>(
    "select obj_description(to_regnamespace('headroom'), 'pg_namespace') as comment",
  )
  if (rows[0]?.comment === digest) return
  for (const text of texts) await client.query(text)
  await client.query(`comment on schema headroom is '${digest}'`)
}

export async function inTransaction(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query('begin')
  try {
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
