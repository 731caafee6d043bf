/**
 * One controller a file. The lock is an operating-system lock on `<file>.lock`, held for as long as the process lives: kill -9 frees
 * it, and nothing is left to clean up. SQLite takes it for us, because Node has no call for file locks.
 */
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'

export interface HeldLock {
  release(): void
}

/**
 * @param waitMs how long to wait for a controller that is just ending, milliseconds.
 * @throws StoreFault when another controller holds the file; SqliteError when the lock file cannot be made.
 */
export function holdLock(path: string, waitMs: number): HeldLock {
  const lock = new Database(`${path}.lock`, { timeout: waitMs })
  try {
    // Without a journal nothing is ever written; the lock file stays empty.
    lock.pragma('journal_mode = off')
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (isBusy(error)) throw new StoreFault(`${path} is in use by another controller: stop that one first, or name another data directory`)
    throw error
  }
  return { release: () => lock.close() }
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
