/**
 * Verifies that the file is intact and its contents are consistent. Only reads, as of one instant; a
 * controller may run and write meanwhile. Earlier schema versions are accepted; a later one cannot be judged.
 */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { refusal } from '../sql/continuity.ts'
import { compareFile, readPosition } from './position.ts'
import { kyselyOf } from './dialect.ts'
import { faultOf } from './faults.ts'
import { markOf } from './identity.ts'
import { readMark, type FoundMark } from '../sql/mark-file.ts'
import { migrate, MIGRATIONS, schemaVersion } from './migrations.ts'
import { damagedRow } from './damaged-row.ts'
import { MAX_TOLD, recordProblems } from './verify-records.ts'

export interface Verdict {
  readonly schema: number
  readonly epoch: number
  readonly tasks: number
  readonly events: number
  readonly nodes: number
  /** Empty: no problems. One line each. */
  readonly problems: readonly string[]
}

/**
 * @throws StoreFault, one line, if it cannot be read, is not a Headroom store, or has a newer version
 */
export async function verifyStore(path: string, busyTimeoutMs = 2_000): Promise<Verdict> {
  let db: Database.Database | undefined
  try {
    // Read before the store: a running controller only advances the store.
    const found = readMark(path)
    db = new Database(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs })
    db.pragma('trusted_schema = off')
    db.exec('begin')
    const verdict = await verdictOf(db, path)
    return {
      ...verdict,
      problems: [...verdict.problems, ...continuityProblems(db, path, verdict.schema, found)],
    }
  } catch (error) {
    throw faultOf(error, path)
  } finally {
    db?.close()
  }
}

/** Only for the store of a data folder: a backup has no mark. */
function continuityProblems(
  db: Database.Database,
  path: string,
  schema: number,
  found: FoundMark,
): readonly string[] {
  if (schema === 0 || !existsSync(markOf(path))) return []
  const continuity = compareFile(db, path, readPosition(db, schema), found)
  return continuity.is === 'broken' ? [`mark: ${refusal(continuity)}`] : []
}

async function verdictOf(db: Database.Database, path: string): Promise<Verdict> {
  const pages = db.pragma(`integrity_check(${MAX_TOLD})`) as readonly { readonly integrity_check: string }[]
  const damage = pages.map((row) => row.integrity_check).filter((text) => text !== 'ok')
  if (damage.length > 0)
    return {
      schema: 0,
      epoch: 0,
      tasks: 0,
      events: 0,
      nodes: 0,
      problems: damage.map((text) => `damaged: ${text}`),
    }
  const schema = await schemaVersion(kyselyOf(db), path)
  if (schema === 0) throw new StoreFault(`${path} is empty: it never contained a store`)
  const structure = await structureProblems(db, schema)
  const count = (table: string): number =>
    db.prepare<[], number>(`select count(*) from ${table}`).pluck().get() ?? 0
  if (structure.length > 0) return { schema, epoch: 0, tasks: 0, events: 0, nodes: 0, problems: structure }
  return {
    schema,
    epoch: db.prepare<[], number>('select epoch from marks').pluck().get() ?? 0,
    tasks: count('tasks'),
    events: count('events'),
    nodes: count('nodes'),
    problems: [...damagedRows(db), ...recordProblems(db)],
  }
}

function damagedRows(db: Database.Database): readonly string[] {
  const row = damagedRow(db)
  return row === null ? [] : [`damaged: ${row}`]
}

/** Tables of its steps must exist unchanged; additional ones are ignored. */
async function structureProblems(db: Database.Database, schema: number): Promise<readonly string[]> {
  const fresh = new Database(':memory:')
  try {
    await migrate(kyselyOf(fresh), ':memory:', 0, MIGRATIONS.slice(0, schema))
    const found = new Map(objectsOf(db))
    return objectsOf(fresh).flatMap(([name, sql]) => {
      const has = found.get(name)
      if (has === undefined) return [`schema: ${name} is missing`]
      return has === sql ? [] : [`schema: ${name} differs from that of version ${schema}`]
    })
  } finally {
    fresh.close()
  }
}

function objectsOf(db: Database.Database): readonly (readonly [name: string, sql: string | null])[] {
  const rows = db
    .prepare<[], { name: string; type: string; sql: string | null }>(
      'select name, type, sql from sqlite_schema',
    )
    .all()
  return rows.map(({ name, type, sql }) => [`${type} ${name}`, sql])
}
