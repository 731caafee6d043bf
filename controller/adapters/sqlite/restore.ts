/**
 * Replaces the store with a backup. The existing store is kept under another name; nothing changes before the
 * backup was read completely.
 */
import { chownSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { backUp } from './backup.ts'
import { kyselyOf } from './dialect.ts'
import { faultOf } from './faults.ts'
import { makeDirectory, publishFile } from '../sql/files.ts'
import { markOf, markStore } from './identity.ts'
import { holdLock } from './lock.ts'
import { readMark } from '../sql/mark-file.ts'
import { migrate } from './migrations.ts'
import { enterRecovery } from '../sql/recovery.ts'
import { markText } from '../sql/store-mark.ts'
import { verifyStore, type Verdict } from './verify.ts'

export interface RestoreOptions {
  readonly backup: string
  readonly path: string
  /** An existing store is moved aside. */
  readonly isForced: boolean
  readonly at: Date
  readonly busyTimeoutMs: number
}

export interface Restored {
  readonly verdict: Verdict
  /** New path of the former store; null if there was none. */
  readonly aside: string | null
}

/** @throws StoreFault, one line; the store is then unchanged */
export async function restoreStore({
  backup,
  path,
  isForced,
  at,
  busyTimeoutMs,
}: RestoreOptions): Promise<Restored> {
  const verdict = await requireWell(backup)
  try {
    makeDirectory(dirname(path))
    const lock = holdLock(path, busyTimeoutMs)
    try {
      if (existsSync(path) && !isForced)
        throw new StoreFault(`there is a store at ${path}: use --force to rename and replace it`)
      return { verdict, aside: await replace(backup, path, at) }
    } finally {
      lock.release()
    }
  } catch (error) {
    throw faultOf(error, path)
  }
}

/** @throws StoreFault */
export async function requireWell(backup: string): Promise<Verdict> {
  const verdict = await verifyStore(backup)
  const [first] = verdict.problems
  if (first === undefined) return verdict
  throw new StoreFault(
    `${backup} was not restored: ${first} (${verdict.problems.length} problems; headroom verify lists all)`,
  )
}

async function replace(backup: string, path: string, at: Date): Promise<string | null> {
  const ready = `${path}.restoring`
  try {
    backUp(backup, ready, 0)
    await prepare(ready, path, at)
    const aside = putAside(path, at, 'restore')
    publishFile(ready, path)
    markStore(path, at)
    giveToOwner(path)
    return aside
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${ready}${suffix}`, { force: true })
  }
}

/**
 * The existing mark stays: the restored store states that it need not reach it. So an interrupted restore
 * leaves a matching store and mark, whichever store it is, and the next start creates a new mark.
 */
async function prepare(file: string, path: string, at: Date): Promise<void> {
  const found = readMark(path)
  const mark = found.is === 'there' ? found.slot.mark : null
  const db = new Database(file)
  try {
    // A single file, without a log.
    db.pragma('journal_mode = delete')
    db.pragma('synchronous = full')
    await migrate(kyselyOf(db), file, at.getTime())
    const recovery = {
      reason: 'restored',
      sinceWallMs: at.getTime(),
      highestEpoch: Math.max(epochOf(db), existsSync(path) ? epochIn(path) : 0, mark?.epoch ?? 0),
      supersedes: mark === null ? null : markText(mark),
    } as const
    await kyselyOf(db)
      .transaction()
      .execute((step) => enterRecovery(step, recovery))
  } finally {
    db.close()
  }
}

function epochOf(db: Database.Database): number {
  return db.prepare<[], number>('select epoch from marks').pluck().get() ?? 0
}

/** An unreadable store is often the reason for a restore: its mark then provides the epoch. */
function epochIn(path: string): number {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true })
    try {
      return epochOf(db)
    } finally {
      db.close()
    }
  } catch {
    return 0
  }
}

/** The log first: next to another store it would be taken for that store's. */
export function putAside(path: string, at: Date, reason: 'restore' | 'migration'): string | null {
  const aside = `${path}.before-${reason}-${at.toISOString().replaceAll(/[:.]/g, '-')}`
  for (const suffix of ['-wal', '-shm'])
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${aside}${suffix}`)
  if (!existsSync(path)) return null
  renameSync(path, aside)
  return aside
}

/** Restored by root, it belongs to the owner of the folder. */
function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(path))
  for (const file of [path, `${path}.lock`, markOf(path)]) if (existsSync(file)) chownSync(file, uid, gid)
}
