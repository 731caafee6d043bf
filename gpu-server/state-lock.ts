/**
 * Ensures one server per state folder. The lock is SQLite's on its own file: the kernel releases it whenever
 * the process ends, and it also works between containers of one host that share the folder.
 */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { StateFault } from './state-fault.ts'

/**
 * Throws StateFault when another server has the lock.
 * @returns a function that releases it
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, 'lock')
  try {
    closeSync(openSync(path, 'a', 0o600))
    const lock = new Database(path, { timeout: 0 })
    try {
      lock.pragma('journal_mode = DELETE')
      lock.pragma('locking_mode = EXCLUSIVE')
      lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      lock.close()
      throw error
    }
    return () => void lock.close()
  } catch (error) {
    const isTaken = (error as { readonly code?: string }).code === 'SQLITE_BUSY'
    const why = isTaken
      ? 'another GPU server uses it'
      : error instanceof Error
        ? error.message
        : String(error)
    throw new StateFault(`state folder ${folder}: ${why}`, { cause: error })
  }
}
