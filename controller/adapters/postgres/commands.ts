/** Backup, restore, verification and migration of a PostgreSQL store, through the format of backups. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import type pg from 'pg'
import type { BlobFiles } from '../../ports/blob-files.ts'
import { StoreFault } from '../../ports/store.ts'
import { makeDirectory, publishFile } from '../sql/files.ts'
import { markPath } from '../sql/mark-file.ts'
import { enterRecovery } from '../sql/recovery.ts'
import { markText } from '../sql/store-mark.ts'
import { backUp, requireWhole } from '../sqlite/backup.ts'
import { kyselyOf } from '../sqlite/dialect.ts'
import { markOf } from '../sqlite/identity.ts'
import { holdLock as holdFileLock } from '../sqlite/lock.ts'
import { migrate as migrateFile } from '../sqlite/migrations.ts'
import { putAside, requireWell } from '../sqlite/restore.ts'
import { previewRestore, type RestorePreview } from '../sqlite/restore-preview.ts'
import { verifyStore, type Verdict } from '../sqlite/verify.ts'
import { verifyEvents, type NotedLink, type Verification } from '../sqlite/verify-events.ts'
import { copyFromFile, copyToFile } from './copy.ts'
import { faultOf } from './faults.ts'
import { holdLock } from './lock.ts'
import { inTransaction, migrateWithin, schemaVersion } from './schema-steps.ts'
import { connect, COPYING, kyselyOn, SCHEMA } from './session.ts'
import { newestMark } from './standby-mark.ts'
import { describePlace, type StorePlace } from './store-url.ts'
import { filesOn } from './uploaded-files.ts'

/** A store in PostgreSQL, and the mark of this host. */
export interface PostgresPlace {
  readonly place: StorePlace
  readonly markBase: string
}

/** @throws StoreFault; `target` is then unchanged */
export async function backUpPostgres({ place }: PostgresPlace, target: string): Promise<void> {
  const partial = `${target}.partial`
  rmSync(partial, { force: true })
  try {
    await copied(place, partial)
    publishFile(partial, target)
  } finally {
    rmSync(partial, { force: true })
  }
}

async function copied(place: StorePlace, file: string): Promise<void> {
  writeFileSync(file, '', { mode: 0o600, flag: 'wx' })
  await connected(place, async (client) => {
    await requireStore(client, place)
    await copyToFile(client, file, Date.now())
  })
  chmodSync(file, 0o600)
  requireWhole(file)
}

/** Uploaded files of tasks, for the time of `work`. @throws StoreFault if they cannot be read */
export function withPostgresFiles<T>(
  { place }: PostgresPlace,
  work: (files: BlobFiles) => Promise<T>,
): Promise<T> {
  return connected(place, (client) => work(filesOn(client, place)))
}

/** @throws StoreFault if it cannot be read */
export function verifyPostgres(store: PostgresPlace): Promise<Verdict> {
  return onCopy(store, async (file, named) => {
    const verdict = await verifyStore(file)
    return { ...verdict, problems: verdict.problems.map(named) }
  })
}

/** @throws StoreFault if it cannot be read */
export function verifyPostgresEvents(
  store: PostgresPlace,
  noted: readonly NotedLink[] | undefined,
): Promise<Verification> {
  return onCopy(store, (file) => Promise.resolve(verifyEvents(file, noted)))
}

/** @throws StoreFault if the backup or the store cannot be read */
export async function previewPostgresRestore(backup: string, store: PostgresPlace): Promise<RestorePreview> {
  const isThere = await connected(store.place, async (client) => (await schemaVersion(client)) > 0)
  if (!isThere) return previewRestore(backup, store.markBase)
  return onCopy(store, (file) => previewRestore(backup, file))
}

/** Works on a copy of the store, next to which is the mark of this host. */
async function onCopy<T>(
  { place, markBase }: PostgresPlace,
  work: (file: string, named: (text: string) => string) => Promise<T>,
): Promise<T> {
  makeDirectory(dirname(markBase))
  const folder = mkdtempSync(`${markBase}.copy-`)
  const file = join(folder, 'store.db')
  try {
    // Read before the store: a running controller only advances the store.
    if (existsSync(markPath(markBase))) {
      copyFileSync(markPath(markBase), markPath(file))
      writeFileSync(markOf(file), '')
    }
    await copied(place, file)
    const named = (text: string) =>
      text.replaceAll(markPath(file), markPath(markBase)).replaceAll(file, describePlace(place))
    return await work(file, named)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface RestoredPostgres {
  readonly verdict: Verdict
  /** The schema of the former store now; null if there was none. */
  readonly aside: string | null
}

/**
 * Replaces the store in one transaction; the former one stays in a schema of another name.
 * @param copyFiles puts uploaded files into the new store, in that transaction
 * @throws StoreFault; the store is then unchanged
 */
export async function restorePostgres(
  backup: string,
  { place, markBase }: PostgresPlace,
  { isForced, at }: { readonly isForced: boolean; readonly at: Date },
  copyFiles: (to: BlobFiles) => Promise<void> = () => Promise.resolve(),
): Promise<RestoredPostgres> {
  const verdict = await requireWell(backup)
  return withCurrentCopy(backup, markBase, at, (file) =>
    connected(place, async (client) => {
      await holdLock(client, 0)
      const schema = await schemaVersion(client)
      if (schema > 0 && !isForced)
        throw new StoreFault(
          `there is a store in ${describePlace(place)}: use --force to rename and replace it`,
        )
      const found = newestMark(markBase)
      const mark = found.is === 'there' ? found.slot.mark : null
      const former = schema > 0 ? await epochOf(client) : 0
      const aside = schema > 0 ? asideName(at) : null
      await inTransaction(client, async () => {
        if (aside !== null) await client.query(`alter schema ${SCHEMA} rename to ${aside}`)
        await migrateWithin(client, 0, at.getTime())
        await copyFromFile(file, client)
        await copyFiles(filesOn(client, place))
        const highestEpoch = Math.max(await epochOf(client), former, mark?.epoch ?? 0)
        await enterRecovery(kyselyOn(client), {
          ...{ reason: 'restored', sinceWallMs: at.getTime(), highestEpoch },
          supersedes: mark === null ? null : markText(mark),
        })
      })
      return { verdict, aside }
    }),
  )
}

/**
 * Moves the store of a stopped controller from SQLite into an empty database, with its whole history. The
 * file is put aside, so that no controller continues with it by mistake.
 * @param copyFiles as restorePostgres has it
 * @returns where the file is now
 * @throws StoreFault; both stores are then unchanged
 */
export async function migrateToPostgres(
  path: string,
  { place, markBase }: PostgresPlace,
  at: Date,
  copyFiles: (to: BlobFiles) => Promise<void> = () => Promise.resolve(),
): Promise<{ readonly verdict: Verdict; readonly aside: string | null }> {
  const verdict = await verifyStore(path)
  const [first] = verdict.problems
  if (first !== undefined) throw new StoreFault(`${path} is not migrated: ${first}`)
  const lock = holdFileLock(path, 0)
  try {
    return await withCurrentCopy(path, markBase, at, (file) =>
      connected(place, async (client) => {
        await holdLock(client, 0)
        if ((await schemaVersion(client)) > 0)
          throw new StoreFault(`there is a store in ${describePlace(place)}: name an empty database`)
        await inTransaction(client, async () => {
          await migrateWithin(client, 0, at.getTime())
          await copyFromFile(file, client)
          await copyFiles(filesOn(client, place))
        })
        return { verdict, aside: putAside(path, at, 'migration') }
      }),
    )
  } finally {
    lock.release()
  }
}

/** A copy of the file with the current schema. */
async function withCurrentCopy<T>(
  path: string,
  markBase: string,
  at: Date,
  work: (file: string) => Promise<T>,
): Promise<T> {
  makeDirectory(dirname(markBase))
  const folder = mkdtempSync(`${markBase}.copy-`)
  const file = join(folder, 'store.db')
  try {
    backUp(path, file, 0)
    const db = new Database(file)
    try {
      db.pragma('journal_mode = delete')
      await migrateFile(kyselyOf(db), file, at.getTime())
    } finally {
      db.close()
    }
    return await work(file)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function connected<T>(place: StorePlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  let client: pg.Client | undefined
  try {
    ;({ client } = await connect(place, COPYING))
    return await work(client)
  } catch (error) {
    // A fault of a file names it.
    throw isOfFile(error) ? error : faultOf(error, describePlace(place))
  } finally {
    await client?.end().catch(() => undefined)
  }
}

function isOfFile(error: unknown): boolean {
  return error instanceof Error && 'path' in error
}

async function requireStore(client: pg.ClientBase, place: StorePlace): Promise<void> {
  if ((await schemaVersion(client)) === 0)
    throw new StoreFault(
      `there is no store in ${describePlace(place)}: name its database in CONTROLLER_STORE_URL`,
    )
}

async function epochOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ epoch: number | null }>(
    'select max(epoch) as epoch from headroom.marks',
  )
  return rows[0]?.epoch ?? 0
}

function asideName(at: Date): string {
  return `headroom_before_restore_${at.toISOString().replaceAll(/\D/g, '')}`
}
