/** Opens the database for writing: directory, file, lock, pragmas, check, schema. */
import { chmodSync, closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { copyBeforeUpgrade } from './backup.ts'
import { refusal, type Continuity, type StorePosition } from '../sql/continuity.ts'
import { compareFile, readPosition } from './position.ts'
import { kyselyOf } from './dialect.ts'
import { damaged } from './faults.ts'
import { makeDirectory } from '../sql/files.ts'
import { markStore, requireNoStoreBefore } from './identity.ts'
import { holdLock } from './lock.ts'
import { openMarkFile, readMark, type FoundMark, type MarkFile } from '../sql/mark-file.ts'
import type { WorkerSettings } from './messages.ts'
import { migrate, SCHEMA_VERSION, schemaVersion } from './migrations.ts'
import { enterRecovery, type Recovery } from '../sql/recovery.ts'
import { damagedRow } from './damaged-row.ts'
import { markText, type FileMark } from '../sql/store-mark.ts'
import { keepKind, requireKind } from './store-kind.ts'

/** Size of SQLite's cache for the writer, KiB. */
const WRITER_CACHE_KIB = 32_768

/**
 * The log is merged into the file at this number of 4 KiB pages (32 MiB). Compared with SQLite's 1000,
 * commits of 10 tasks were a fifth faster, and their p99 fell from about 5 ms to about 1 (measured).
 */
const CHECKPOINT_PAGES = 8192

/** A larger log is truncated to this size at the next checkpoint, bytes. */
const WAL_SIZE_LIMIT_BYTES = 67_108_864

export interface OpenedForWriting {
  readonly db: Database.Database
  /** Stores the extent of the store outside the database. */
  readonly mark: MarkFile
  readonly storeId: string
  /** Messages for the operator. */
  readonly lines: readonly string[]
  close(): void
}

/**
 * Opens the file as its only writer, creates it if absent (mode 0600, its directory 0700), checks it,
 * compares it with its mark and migrates its schema.
 * @throws StoreFault, SqliteError or a file-system error; nothing stays open then, and a refused store is
 * unchanged
 */
export async function openForWriting(settings: WorkerSettings): Promise<OpenedForWriting> {
  const isNew = prepareFile(settings)
  const path = realpathSync(settings.path)
  const lock = holdLock(path, settings.busyTimeoutMs)
  let db: Database.Database | undefined
  let mark: MarkFile | undefined
  const close = () => {
    mark?.close()
    db?.close()
    lock.release()
  }
  try {
    const { schema, position, found, continuity } = await inspect(path, settings)
    if (schema === 0 && !isNew) requireNoStoreBefore(settings.path, settings.isStoreExpected)
    const loss = acceptedLoss(continuity, settings.acceptLoss)
    db = new Database(path, { timeout: settings.busyTimeoutMs })
    db.pragma('trusted_schema = off')
    db.pragma(`cache_size = -${WRITER_CACHE_KIB}`)
    if (settings.kind !== null) requireKind(db, path, schema, settings.kind)
    const copy = schema > 0 && schema < SCHEMA_VERSION ? copyBeforeUpgrade(db, path, schema) : null
    setUp(db, path, settings.maxPages)
    const migrated = await migrate(kyselyOf(db), path, Date.now())
    // A new store avoids the epochs of the previous one, whose tasks the GPU servers may still run.
    const before = position === null && found.is === 'there' ? found.slot.mark : null
    const entered = loss ?? (before === null ? null : lossOf(markText(before), before.epoch))
    if (entered !== null)
      await kyselyOf(db)
        .transaction()
        .execute((at) => enterRecovery(at, entered))
    if (settings.kind !== null) keepKind(db, settings.kind)
    markStore(settings.path, new Date())
    const current = currentMark(db)
    mark = openMarkFile(path, current, found.is === 'there' ? found.slot.generation + 1 : 1, Date.now)
    db.exec('update history set is_marked = 1 where is_marked = 0')
    // Merges a log left by a crash into the file, so that the log does not grow from crash to crash.
    db.pragma('wal_checkpoint(truncate)')
    const lines = isNew ? [`made ${path}`] : []
    if (migrated.from !== migrated.to) lines.push(`${path}: schema ${migrated.from} → ${migrated.to}`)
    if (copy !== null) lines.push(`${copy} is a copy of the previous store`)
    if (loss !== null)
      lines.push(`${path}: the loss up to mark ${loss.supersedes} is accepted; the controller is in recovery`)
    return { db, mark, storeId: current.storeId, lines, close }
  } catch (error) {
    close()
    throw error
  }
}

/** A second connection, only for reads: it sees committed data and never waits for the writer. */
export function openForReading(settings: WorkerSettings): Database.Database {
  const db = new Database(realpathSync(settings.path), {
    readonly: true,
    fileMustExist: true,
    timeout: settings.busyTimeoutMs,
  })
  db.pragma('trusted_schema = off')
  // The first read takes the lock that store.ts relies on when it closes after a failure.
  db.pragma('schema_version')
  return db
}

/** @returns true if the file was just created */
function prepareFile({ path, isStoreExpected }: WorkerSettings): boolean {
  if (!existsSync(path)) requireNoStoreBefore(path, isStoreExpected)
  makeDirectory(dirname(path))
  if (existsSync(path)) {
    const found = statSync(path)
    if (found.isDirectory())
      throw new StoreFault(`${path} is a directory, but should be a file: move it away`)
    // The lock file is next to the store: links in two folders have two locks.
    if (found.nlink > 1)
      throw new StoreFault(
        `${path} has ${found.nlink} hard links, so another controller could open the same file: copy ` +
          'the file, and remove the links',
      )
    return false
  }
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  return true
}

interface Inspected {
  /** The version of its schema; 0: no tables. */
  readonly schema: number
  /** Null without tables. */
  readonly position: StorePosition | null
  readonly found: FoundMark
  readonly continuity: Continuity
}

/** Only reads, including the log: a damaged, foreign, too new or outdated file stays unchanged. */
async function inspect(path: string, { busyTimeoutMs }: WorkerSettings): Promise<Inspected> {
  const found = readMark(path)
  const nothing: Inspected = { schema: 0, position: null, found, continuity: { is: 'complete' } }
  if (statSync(path).size === 0) return nothing
  const db = new Database(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs })
  try {
    db.pragma('trusted_schema = off')
    db.pragma(`cache_size = -${WRITER_CACHE_KIB}`)
    const check = db.pragma('quick_check(1)', { simple: true })
    if (check !== 'ok') throw new StoreFault(damaged(path, `(quick_check: ${String(check)})`))
    const schema = await schemaVersion(kyselyOf(db), path)
    if (schema === 0) return nothing
    const row = damagedRow(db)
    if (row !== null) throw new StoreFault(damaged(path, `(${row})`))
    const position = readPosition(db, schema)
    return { schema, position, found, continuity: compareFile(db, path, position, found) }
  } finally {
    db.close()
  }
}

/**
 * @param accepted what an operator named; null: nothing.
 * @returns null: nothing is lost.
 * @throws StoreFault when something is, and that is not accepted; or when nothing is that could be.
 */
function acceptedLoss(continuity: Continuity, accepted: string | null): Recovery | null {
  if (continuity.is === 'broken') {
    if (accepted === continuity.mark) return lossOf(continuity.mark, continuity.epoch)
    throw new StoreFault(refusal(continuity, accepted))
  }
  if (accepted === null) return null
  throw new StoreFault(
    `There is no loss to accept: the store matches its mark. Start without --accept-loss ${accepted}.`,
  )
}

function lossOf(supersedes: string, highestEpoch: number): Recovery {
  return { reason: 'loss_accepted', sinceWallMs: Date.now(), supersedes, highestEpoch }
}

function currentMark(db: Database.Database): FileMark {
  const { storeId, epoch, eventSeq, commits, chain } = readPosition(db, SCHEMA_VERSION)
  if (storeId === null || chain === null)
    throw new Error('broken invariant: the store has no id, or no chain')
  return { storeId, epoch, eventSeq, commits, chain }
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
    throw new StoreFault(
      `${path} is on a file system without shared memory (journal ${String(journal)}): use a local data ` +
        'directory',
    )
  }
}
