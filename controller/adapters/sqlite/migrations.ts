/**
 * The schema's history: numbered steps, forward only. A released step never changes; the next change is a new
 * step at the end.
 */
import { sql, type Kysely } from 'kysely'
import { StoreFault } from '../../ports/store.ts'
import { renameBusOwners } from './migrate-bus-owners.ts'
import { chainEvents } from './migrate-event-chain.ts'
import { addRetentionClock } from './migrate-retention-clock.ts'
import type { Schema } from '../sql/schema.ts'
import { sealRows } from './seal-rows.ts'

export interface Migration {
  /** 1, 2, 3, … without a gap. */
  readonly version: number
  readonly name: string
  /** @param at milliseconds since the Unix epoch */
  up(db: Kysely<never>, at: number): Promise<void>
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'first tables', up: firstTables },
  { version: 2, name: 'records know stops, confirmations and leases', up: recordsOfLiveness },
  { version: 3, name: 'tokens and audit', up: accessTables },
  { version: 4, name: 'events are a chain', up: chainEvents },
  { version: 5, name: 'records know wishes of operators', up: recordsOfWishes },
  { version: 6, name: 'submission keys, ended tasks by node', up: submissionKeys },
  { version: 7, name: 'decisions', up: decisionTables },
  { version: 8, name: 'records know their latest event', up: recordsOfCauses },
  { version: 9, name: 'history: epochs, commits, recovery', up: historyTables },
  { version: 10, name: 'controller time for retention', up: addRetentionClock },
  { version: 11, name: 'rows have checksums', up: checksumColumns },
  { version: 12, name: 'owners of tasks that came over the bus', up: renameBusOwners },
  { version: 13, name: 'epochs know their controller', up: controllersOfEpochs },
  { version: 14, name: 'tasks know their image', up: imagesOfTasks },
  { version: 15, name: 'secrets, and environments of tasks', up: secretsTable },
  { version: 16, name: 'tasks know their files', up: filesOfTasks },
  { version: 17, name: 'tasks know their limits', up: limitsOfTasks },
  { version: 18, name: 'tasks know their mounts', up: mountsOfTasks },
]

/** The schema version that this program writes. */
export const SCHEMA_VERSION = MIGRATIONS.length

export interface Migrated {
  readonly from: number
  readonly to: number
}

/**
 * Migrates the schema to the last of `migrations`, one transaction per step. Called by the only writer,
 * before anything else.
 * @param at milliseconds since the Unix epoch, recorded with each step
 * @throws StoreFault if the file comes from a newer version, or contains foreign tables
 */
export async function migrate(
  db: Kysely<Schema>,
  path: string,
  at: number,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<Migrated> {
  const from = await schemaVersion(db, path, migrations)
  for (const migration of migrations.slice(from)) {
    await db.transaction().execute(async (step) => {
      await migration.up(step as unknown as Kysely<never>, at)
      await sealRows(step)
      await step
        .insertInto('schema_version')
        .values({ version: migration.version, name: migration.name, applied_at: at })
        .execute()
    })
  }
  return { from, to: migrations.length }
}

/**
 * The schema version of the file; 0 without tables. Only reads.
 * @throws StoreFault as `migrate` does
 */
export async function schemaVersion(
  db: Kysely<Schema>,
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<number> {
  const tables = await sql<{ name: string }>`select name from sqlite_schema where type = 'table'`.execute(db)
  if (tables.rows.length === 0) return 0
  if (!tables.rows.some((table) => table.name === 'schema_version')) throw new StoreFault(notOurs(path))
  const row = await db
    .selectFrom('schema_version')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirst()
  const version = row?.version ?? 0
  if (version > migrations.length) throw new StoreFault(newerSchema(path, version, migrations.length))
  return version
}

function newerSchema(path: string, found: number, known: number): string {
  return (
    `${path} was written by a newer Headroom (schema ${found}; this version supports up to ${known}): ` +
    'start that version, or restore a backup made before the upgrade'
  )
}

function notOurs(path: string): string {
  return (
    `${path} is a database of another program (no table schema_version): use another data directory, or ` +
    'move the file away'
  )
}

/**
 * Absent in a record: no image. The step keeps out an earlier controller, which would drop the field and then
 * have the task's command run on the host.
 */
function imagesOfTasks(): Promise<void> {
  return Promise.resolve()
}

/** Absent in a record: none. The step keeps out an earlier controller, which would mount none. */
function mountsOfTasks(): Promise<void> {
  return Promise.resolve()
}

/** Absent in a record: none. The step keeps out an earlier controller, which would set none. */
function limitsOfTasks(): Promise<void> {
  return Promise.resolve()
}

/**
 * Absent in a record: no uploaded folder and no folder to start in. As above, the step keeps out an earlier
 * controller.
 */
function filesOfTasks(): Promise<void> {
  return Promise.resolve()
}

/**
 * Older records: nothing was held back, ordered or in doubt, and an earlier message confirmed running
 * attempts.
 */
async function recordsOfLiveness(db: Kysely<never>): Promise<void> {
  await sql`update tasks set record = json_insert(record, '$.clientWants', json('null'))
    where is_final = 0`.execute(db)
  await sql`update tasks set record = json_insert(record,
    '$.placement.heldGrowth', json('null'), '$.placement.stopping', json('null'),
    '$.placement.confirmed',
    json(iif(json_extract(record, '$.placement.startedAt') is null, 'null', '{"bootCounter":0,"seq":0}')),
    '$.placement.isInDoubt', json('false'), '$.placement.isNoswapUntold', json('false'))
    where is_final = 0 and json_type(record, '$.placement') = 'object'`.execute(db)
  await sql`update nodes set record = json_insert(record,
    '$.device', 'simulated', '$.signalsWanted', json('true'), '$.allowExec', json('true'),
    '$.leaseMs', 300000, '$.wasReset', json('false'))`.execute(db)
}

async function accessTables({ schema }: Kysely<never>): Promise<void> {
  const strict = sql`strict`
  await schema
    .createTable('tokens')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await schema
    .createTable('audits')
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('actor', 'text')
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('outcome', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await schema.createIndex('audits_of_kind').on('audits').columns(['kind', 'seq']).execute()
}

async function decisionTables({ schema }: Kysely<never>): Promise<void> {
  await schema
    .createTable('decisions')
    .addColumn('number', 'integer', (column) => column.primaryKey())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema.createIndex('decisions_of_node').on('decisions').columns(['node_id', 'number']).execute()
  await schema.createIndex('decisions_of_kind').on('decisions').columns(['kind', 'number']).execute()
  // The subject and the victims of each.
  await schema
    .createTable('decision_tasks')
    .addColumn('task_id', 'text', (column) => column.notNull())
    .addColumn('number', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('decision_tasks_key', ['task_id', 'number'] as never)
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema.createIndex('decision_tasks_by_number').on('decision_tasks').column('number').execute()
}

/** Older records: no operator had requested a return, and no node was being drained. */
async function recordsOfWishes(db: Kysely<never>): Promise<void> {
  await sql`update tasks set record = json_insert(record, '$.placement.isCalledBack', json('false'))
    where is_final = 0 and json_type(record, '$.placement') = 'object'`.execute(db)
  await sql`update nodes set record = json_insert(record, '$.drain', json('null'))`.execute(db)
}

async function recordsOfCauses(db: Kysely<never>): Promise<void> {
  await sql`update tasks set record = json_set(record, '$.lastEventSeq',
    (select max(seq) from events where task_id = tasks.id)) where is_final = 0`.execute(db)
  await sql`update nodes set record = json_set(record, '$.drain.event',
    (select coalesce(max(seq), 0) from events where node_id = nodes.id and kind = 'node_drain'))
    where json_type(record, '$.drain') = 'object'`.execute(db)
}

/** The tables of row-sums.ts; filled as after every step. */
async function checksumColumns(db: Kysely<never>): Promise<void> {
  for (const table of ['tasks', 'nodes', 'groups', 'config_revisions', 'tokens', 'submission_keys']) {
    await sql`alter table ${sql.table(table)} add column sum integer`.execute(db)
  }
}

async function historyTables(db: Kysely<never>): Promise<void> {
  await sql`create table epochs (epoch integer primary key, first_event_seq integer not null) strict`.execute(
    db,
  )
  await sql`create table history (
    id integer primary key check (id = 1),
    store_id text not null,
    commits integer not null,
    is_marked integer not null,
    supersedes text,
    recovery_reason text,
    recovery_since integer
  ) strict`.execute(db)
  await sql`insert into history values (1, lower(hex(randomblob(16))), 0, 0, null, null, null)`.execute(db)
}

async function controllersOfEpochs(db: Kysely<never>): Promise<void> {
  await sql`alter table epochs add column controller text`.execute(db)
}

async function secretsTable({ schema }: Kysely<never>): Promise<void> {
  await schema
    .createTable('secrets')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addColumn('sum', 'integer')
    .modifyEnd(sql`strict`)
    .execute()
}

async function submissionKeys({ schema }: Kysely<never>): Promise<void> {
  await schema
    .createTable('submission_keys')
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('task_id', 'text', (column) => column.notNull())
    .addColumn('at', 'integer', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createIndex('tasks_final_by_node')
    .on('tasks')
    .columns(['state', 'node_id', 'seq', 'name'])
    .where(sql.ref('is_final'), '=', 1)
    .execute()
}

async function firstTables(db: Kysely<never>): Promise<void> {
  const { schema } = db
  const strict = sql`strict`
  await schema
    .createTable('schema_version')
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'integer', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await firstTaskTable(db)
  await firstEventTable(db)
  await schema
    .createTable('nodes')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('ordinal', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await schema
    .createTable('groups')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await schema
    .createTable('config_revisions')
    .addColumn('revision', 'integer', (column) => column.primaryKey())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('author', 'text')
    .addColumn('fields', 'text', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
  await schema
    .createTable('marks')
    .addColumn('id', 'integer', (column) => column.primaryKey().check(sql`id = 1`))
    .addColumn('epoch', 'integer', (column) => column.notNull())
    .addColumn('next_task_seq', 'integer', (column) => column.notNull())
    .addColumn('next_event_seq', 'integer', (column) => column.notNull())
    .addColumn('next_decision', 'integer', (column) => column.notNull())
    .modifyEnd(strict)
    .execute()
}

async function firstTaskTable({ schema }: Kysely<never>): Promise<void> {
  await schema
    .createTable('tasks')
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('owner', 'text')
    .addColumn('node_id', 'text')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('is_final', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createIndex('tasks_open')
    .on('tasks')
    .column('seq')
    .where(sql.ref('is_final'), '=', 0)
    .execute()
  // The name is in the index so that a search by name reads only the rows that it returns.
  await schema
    .createIndex('tasks_final')
    .on('tasks')
    .columns(['state', 'seq', 'name'])
    .where(sql.ref('is_final'), '=', 1)
    .execute()
  await schema
    .createIndex('tasks_final_by_owner')
    .on('tasks')
    .columns(['state', 'owner', 'seq', 'name'])
    .where(sql.ref('is_final'), '=', 1)
    .execute()
}

async function firstEventTable({ schema }: Kysely<never>): Promise<void> {
  await schema
    .createTable('events')
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('at', 'integer', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('task_id', 'text')
    .addColumn('node_id', 'text')
    .addColumn('caused_by', 'integer')
    .addColumn('data', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createIndex('events_of_task')
    .on('events')
    .columns(['task_id', 'seq'])
    .where(sql.ref('task_id'), 'is not', null)
    .execute()
  await schema
    .createIndex('events_of_node')
    .on('events')
    .columns(['node_id', 'seq'])
    .where(sql.ref('node_id'), 'is not', null)
    .execute()
}
