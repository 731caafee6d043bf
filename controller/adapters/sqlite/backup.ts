/**
 * Copies the store as of one instant into one file. A reader makes the copy: the controller may run and write
 * meanwhile, without waiting. The copy gets its name only after it was read back completely.
 */
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { faultOf } from './faults.ts'
import { oneLine } from '../sql/one-line.ts'
import { publishFile } from '../sql/files.ts'

/** Number of copies made before an upgrade that are kept next to the file. */
export const MAX_UPGRADE_COPIES = 3

/**
 * @param db an open store; it is not changed
 * @param target replaced if it exists
 * @throws StoreFault, SqliteError or a file-system error; `target` is then unchanged
 */
function copyStore(db: Database.Database, target: string): void {
  const partial = `${target}.partial`
  rmSync(partial, { force: true })
  try {
    db.prepare('vacuum into ?').run(partial)
    chmodSync(partial, 0o600)
    requireWhole(partial)
    publishFile(partial, target)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
}

/**
 * Makes a backup of the store at `path` while a controller may have it open. @throws StoreFault, one line,
 * that names the file that cannot be used
 */
export function backUp(path: string, target: string, busyTimeoutMs: number): void {
  const db = openStore(path, busyTimeoutMs)
  try {
    copyStore(db, target)
  } catch (error) {
    throw copyFault(error, path, target)
  } finally {
    db.close()
  }
}

function openStore(path: string, busyTimeoutMs: number): Database.Database {
  let db: Database.Database | null = null
  try {
    db = new Database(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs })
    db.pragma('trusted_schema = off')
    // Read once: later faults concern the copy or the reading.
    db.prepare('select count(*) from sqlite_schema').get()
    return db
  } catch (error) {
    db?.close()
    throw faultOf(error, path)
  }
}

/** Reading a store needs neither free space nor write permission. */
function copyFault(error: unknown, path: string, target: string): StoreFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (!/^(?:SQLITE_(?:FULL|CANTOPEN|READONLY|IOERR_WRITE|IOERR_FSYNC)|E[A-Z]+)/.test(code))
    return faultOf(error, path)
  const because = `${code}: ${error instanceof Error ? error.message : ''}`
  return new StoreFault(oneLine(`the copy ${target} cannot be written (${because}); ${path} is unchanged`), {
    cause: error,
  })
}

/** The copy with which a migration can be undone, next to the file; only the newest few are kept. */
export function copyBeforeUpgrade(db: Database.Database, path: string, schema: number): string {
  const target = `${path}.before-schema-${schema + 1}`
  copyStore(db, target)
  const folder = dirname(path)
  const copies = readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.before-schema-`) && /-\d+$/.test(name))
    .map((name) => ({ file: join(folder, name), at: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at || (a.file < b.file ? 1 : -1))
  for (const { file } of copies.slice(MAX_UPGRADE_COPIES)) rmSync(file, { force: true })
  return target
}

/** @throws StoreFault if the file has no valid structure */
export function requireWhole(path: string): void {
  const copy = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const found = copy.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok')
      throw new StoreFault(`the copy ${path} is damaged (quick_check: ${String(found)}): check the disk`)
  } finally {
    copy.close()
  }
}
