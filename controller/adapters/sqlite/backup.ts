/**
 * A copy of the store as of one instant, in one file. It is made by a reader: the controller may run and
 * write meanwhile, and does not wait for it. Only a copy that was read back whole takes its name.
 */
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { StoreFault } from '../../ports/store.ts'
import { faultOf, oneLine } from './faults.ts'
import { publishFile } from './files.ts'

/** So many copies that were made before an upgrade are kept beside the file. */
export const MAX_UPGRADE_COPIES = 3

/**
 * @param db open on the store; nothing of it changes.
 * @param target replaced when it is there.
 * @throws StoreFault, SqliteError or a file-system error; `target` is as before then.
 */
export function copyStore(db: Database.Database, target: string): void {
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
 * Makes a backup of the store at `path` while a controller may have it open.
 * @throws StoreFault, one line, that names the one of the two which cannot be used.
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
    // Read from once: what is wrong from here on is wrong with the copy, or with what is read.
    db.prepare('select count(*) from sqlite_schema').get()
    return db
  } catch (error) {
    db?.close()
    throw faultOf(error, path)
  }
}

/** A store that is read runs out of no space, and needs no right to be written. */
function copyFault(error: unknown, path: string, target: string): StoreFault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (!/^(?:SQLITE_(?:FULL|CANTOPEN|READONLY|IOERR_WRITE|IOERR_FSYNC)|E[A-Z]+)/.test(code))
    return faultOf(error, path)
  const because = `${code}: ${error instanceof Error ? error.message : ''}`
  return new StoreFault(oneLine(`the copy ${target} cannot be written (${because}); ${path} is as it was`), {
    cause: error,
  })
}

/** The copy that a migration can be taken back with: beside the file, only the newest few of its kind. */
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

function requireWhole(path: string): void {
  const copy = new Database(path, { readonly: true, fileMustExist: true })
  try {
    const found = copy.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok')
      throw new StoreFault(
        `the copy ${path} came out damaged (quick_check: ${String(found)}): check the disk`,
      )
  } finally {
    copy.close()
  }
}
