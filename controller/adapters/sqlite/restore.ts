/** A backup becomes the store. What was there is kept aside under another name; nothing is touched before the backup was found whole. */
import { chownSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { backUp } from './backup.ts'
import { faultOf } from './faults.ts'
import { makeDirectory, publishFile } from './files.ts'
import { markOf, markStore } from './identity.ts'
import { holdLock } from './lock.ts'
import { verifyStore, type Verdict } from './verify.ts'

/**
 * Servers have durably seen the epoch of the controller that ran after the backup, and obey no older one (R9). Each start of a controller
 * takes one, so that this is more than any restored store could be behind.
 */
const EPOCHS_AHEAD = 1_000_000

export interface RestoreOptions {
  readonly backup: string
  readonly path: string
  /** A store that is there is put aside. */
  readonly isForced: boolean
  readonly at: Date
  readonly busyTimeoutMs: number
}

export interface Restored {
  readonly verdict: Verdict
  /** Where the store that was there is now; null when there was none. */
  readonly aside: string | null
}

/** @throws StoreFault, one line; the store is as it was then. */
export async function restoreStore({ backup, path, isForced, at, busyTimeoutMs }: RestoreOptions): Promise<Restored> {
  const verdict = await verifyStore(backup)
  if (verdict.problems.length > 0) {
    throw new StoreFault(
      `${backup} is not restored: ${verdict.problems[0]} (${verdict.problems.length} problems; headroom verify tells all)`,
    )
  }
  try {
    makeDirectory(dirname(path))
    const lock = holdLock(path, busyTimeoutMs)
    try {
      if (existsSync(path) && !isForced) throw new StoreFault(`there is a store at ${path}: with --force it is put aside and replaced`)
      return { verdict, aside: replace(backup, path, at) }
    } finally {
      lock.release()
    }
  } catch (error) {
    throw faultOf(error, path)
  }
}

function replace(backup: string, path: string, at: Date): string | null {
  const ready = `${path}.restoring`
  try {
    backUp(backup, ready, 0)
    raiseEpoch(ready)
    const aside = putAside(path, at)
    publishFile(ready, path)
    markStore(path, at)
    giveToOwner(path)
    return aside
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${ready}${suffix}`, { force: true })
  }
}

function raiseEpoch(file: string): void {
  const db = new Database(file)
  try {
    // One file, without a log beside it.
    db.pragma('journal_mode = delete')
    db.pragma('synchronous = full')
    db.prepare('update marks set epoch = epoch + ?').run(EPOCHS_AHEAD)
  } finally {
    db.close()
  }
}

/** The log first: a log beside another store would be taken for its own. */
function putAside(path: string, at: Date): string | null {
  const aside = `${path}.before-restore-${at.toISOString().replaceAll(/[:.]/g, '-')}`
  for (const suffix of ['-wal', '-shm']) if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${aside}${suffix}`)
  if (!existsSync(path)) return null
  renameSync(path, aside)
  return aside
}

/** Restored by root, it belongs to whoever has the folder. */
function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  for (const file of [path, `${path}.lock`, markOf(path)]) if (existsSync(file)) chownSync(file, uid, gid)
}
