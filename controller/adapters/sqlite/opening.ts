/** From a path to a database that may be written: directory, file, lock, pragmas, check, schema. */
import { chmodSync, closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { copyBeforeUpgrade } from './backup.ts'
import { kyselyOf } from './dialect.ts'
import { damaged } from './faults.ts'
import { makeDirectory } from './files.ts'
import { markStore, requireNoStoreBefore } from './identity.ts'
import { holdLock } from './lock.ts'
import type { WorkerSettings } from './messages.ts'
import { migrate, SCHEMA_VERSION, schemaVersion } from './migrations.ts'

/** SQLite keeps this much of the file in memory for the writer, KiB. */
const WRITER_CACHE_KIB = 32_768

/**
 * The log goes into the file once it holds so many pages of 4 KiB (32 MiB). Against SQLite's 1000, commits of 10 tasks came at a rate a
 * fifth higher, and their p99 fell from about 5 ms to about 1 (measured).
 */
const CHECKPOINT_PAGES = 8192

/** A log that grew past this is cut back to it at the next checkpoint, bytes. */
const WAL_SIZE_LIMIT_BYTES = 67_108_864

export interface OpenedForWriting {
  readonly db: Database.Database
  /** What happened that an operator may want to know. */
  readonly lines: readonly string[]
  close(): void
}

/**
 * Opens the file as its only writer, makes it when absent (mode 0600, its directory 0700), checks it and brings its schema up to date.
 * @throws StoreFault, SqliteError or a file-system error; nothing is left open then.
 */
export async function openForWriting(settings: WorkerSettings): Promise<OpenedForWriting> {
  const isNew = prepareFile(settings)
  const path = realpathSync(settings.path)
  const lock = holdLock(path, settings.busyTimeoutMs)
  let db: Database.Database | undefined
  const close = () => {
    db?.close()
    lock.release()
  }
  try {
    db = new Database(path, { timeout: settings.busyTimeoutMs })
    const schema = await inspect(db, path)
    if (schema === 0 && !isNew) requireNoStoreBefore(settings.path, settings.isStoreExpected)
    const copy = schema > 0 && schema < SCHEMA_VERSION ? copyBeforeUpgrade(db, path, schema) : null
    setUp(db, path, settings.maxPages)
    const migrated = await migrate(kyselyOf(db), path, Date.now())
    markStore(settings.path, new Date())
    // What a crash left in the log goes into the file now, so that the log does not grow from crash to crash.
    db.pragma('wal_checkpoint(truncate)')
    const lines = isNew ? [`made ${path}`] : []
    if (migrated.from !== migrated.to) lines.push(`${path}: schema ${migrated.from} → ${migrated.to}`)
    if (copy !== null) lines.push(`${copy} is the store as it was before`)
    return { db, lines, close }
  } catch (error) {
    close()
    throw error
  }
}

/** A second connection, for reads only: it sees what is committed and never waits for the writer. */
export function openForReading(settings: WorkerSettings): Database.Database {
  const db = new Database(realpathSync(settings.path), { readonly: true, fileMustExist: true, timeout: settings.busyTimeoutMs })
  db.pragma('trusted_schema = off')
  // The first read takes the lock that store.ts counts on when it closes after a failure.
  db.pragma('schema_version')
  return db
}

/** @returns whether the file was made just now. */
function prepareFile({ path, isStoreExpected }: WorkerSettings): boolean {
  if (!existsSync(path)) requireNoStoreBefore(path, isStoreExpected)
  makeDirectory(dirname(path))
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) throw new StoreFault(`${path} is a directory and should be the store's file: move it away`)
    return false
  }
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  return true
}

/** Reads only: a file that is damaged, foreign or too new stays as it is. Says which step its schema stands at. */
async function inspect(db: Database.Database, path: string): Promise<number> {
  db.pragma('trusted_schema = off')
  db.pragma(`cache_size = -${WRITER_CACHE_KIB}`)
  const found = db.pragma('quick_check(1)', { simple: true })
  if (found !== 'ok') throw new StoreFault(damaged(path, `(quick_check: ${String(found)})`))
  return schemaVersion(kyselyOf(db), path)
}

function setUp(db: Database.Database, path: string, maxPages: number | null): void {
  db.pragma('foreign_keys = on')
  db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  db.pragma(`journal_size_limit = ${WAL_SIZE_LIMIT_BYTES}`)
  if (maxPages !== null) db.pragma(`max_page_count = ${maxPages}`)
  const journal = db.pragma('journal_mode = wal', { simple: true })
  // better-sqlite3 is built with NORMAL for WAL, which may lose the last commits on a power failure.
  db.pragma('synchronous = full')
  if (journal !== 'wal' || db.pragma('synchronous', { simple: true }) !== 2) {
    throw new StoreFault(`${path} lies on a file system without shared memory (journal ${String(journal)}): name a local data directory`)
  }
}
