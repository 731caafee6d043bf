/**
 * Allows one controller per file. The lock is an operating-system lock on `<file>.lock`, held while the
 * process lives: kill -9 releases it, and no clean-up is needed. SQLite acquires it, because Node has no call
 * for file locks.
 */
import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { faultOf } from './faults.ts'

export interface HeldLock {
  release(): void
}

/**
 * @param waitMs how long to wait for a controller that is ending, milliseconds
 * @throws StoreFault if another controller holds the file, or the lock file cannot be used, which says
 * nothing about the store itself
 */
export function holdLock(path: string, waitMs: number): HeldLock {
  const lock = openLock(path, waitMs)
  try {
    // Without a journal nothing is ever written; the lock file stays empty.
    lock.pragma('journal_mode = off')
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (isBusy(error))
      throw new StoreFault(
        `${path} is in use by another controller: stop it first, or use another data directory`,
      )
    throw lockFault(error, path)
  }
  return { release: () => lock.close() }
}

function openLock(path: string, waitMs: number): Database.Database {
  try {
    return new Database(`${path}.lock`, { timeout: waitMs })
  } catch (error) {
    throw lockFault(error, path)
  }
}

/** Another kind of file has its name. The store is intact and must not be moved away. */
function lockFault(error: unknown, path: string): StoreFault {
  const lockPath = `${path}.lock`
  const fault = faultOf(error, lockPath)
  const found = statSync(lockPath, { throwIfNoEntry: false })
  if (found === undefined || (found.isFile() && found.size === 0)) return fault
  const what = found.isFile()
    ? `is not a lock of Headroom (${found.size} bytes; it should be empty)`
    : 'is not a file'
  return new StoreFault(
    `${lockPath} ${what}: the store is unchanged; make sure that no controller runs, then remove ${lockPath}`,
    {
      cause: error,
    },
  )
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
