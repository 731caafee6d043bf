/** The store that the commands work on: the SQLite file, or PostgreSQL where CONTROLLER_STORE_URL says. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  backUpPostgres,
  previewPostgresRestore,
  restorePostgres,
  verifyPostgres,
  withPostgresFiles,
} from '../../controller/adapters/postgres/commands.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { backUp } from '../../controller/adapters/sqlite/backup.ts'
import { previewRestore, type RestorePreview } from '../../controller/adapters/sqlite/restore-preview.ts'
import { requireWell, restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore, type Verdict } from '../../controller/adapters/sqlite/verify.ts'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import { createFolderFiles, FILES_FOLDER } from '../../services/files/folder-files.ts'
import { postgresMarkBase } from '../../services/controller/open-store.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'

export interface StoreOptions {
  readonly dataDir?: string
}

/** Wait for a file that another program has locked. */
const BUSY_TIMEOUT_MS = 2_000

export interface StoreAccess {
  /** Name of the store in messages. */
  readonly name: string
  readonly dataDir: string
  /** The SQLite file; null: the store is in PostgreSQL. */
  readonly path: string | null
  backUp(file: string): Promise<void>
  verify(): Promise<Verdict>
  preview(backup: string): Promise<RestorePreview>
  /** Uploaded files of tasks, for the time of `work`. */
  withFiles<T>(work: (files: BlobFiles) => Promise<T>): Promise<T>
  /**
   * `aside`: where the former store is now; null if there was none.
   * @param copyFiles after the records: to the database in the same transaction
   */
  restore(
    backup: string,
    isForced: boolean,
    copyFiles: (to: BlobFiles) => Promise<void>,
  ): Promise<{ readonly verdict: Verdict; readonly aside: string | null }>
}

export function openAccess(options: StoreOptions): StoreAccess {
  const settings = readSettings(process.env)
  const dataDir = resolve(options.dataDir ?? settings.dataDir)
  const { storePlace } = settings
  return storePlace === null ? fileAccess(dataDir) : postgresAccess(dataDir, storePlace)
}

function fileAccess(dataDir: string): StoreAccess {
  const path = join(dataDir, STORE_FILE)
  const files = createFolderFiles(join(dataDir, FILES_FOLDER))
  return {
    ...{ name: path, dataDir, path },
    backUp: (file) => {
      if (!existsSync(path))
        return Promise.reject(new UsageError(`no store at ${path}: specify its folder with --data-dir`))
      return Promise.resolve(backUp(path, file, BUSY_TIMEOUT_MS))
    },
    verify: () => verifyStore(path),
    preview: async (backup) => {
      await requireWell(backup)
      return previewRestore(backup, path)
    },
    withFiles: (work) => work(files),
    restore: async (backup, isForced, copyFiles) => {
      const how = { backup, path, isForced, at: new Date(), busyTimeoutMs: BUSY_TIMEOUT_MS }
      const restored = await restoreStore(how)
      await copyFiles(files)
      return restored
    },
  }
}

function postgresAccess(
  dataDir: string,
  place: NonNullable<ReturnType<typeof readSettings>['storePlace']>,
): StoreAccess {
  const store = { place, markBase: postgresMarkBase({ dataDir }) }
  return {
    ...{ name: describePlace(place), dataDir, path: null },
    backUp: (file) => backUpPostgres(store, file),
    verify: () => verifyPostgres(store),
    preview: async (backup) => {
      await requireWell(backup)
      return previewPostgresRestore(backup, store)
    },
    withFiles: (work) => withPostgresFiles(store, work),
    restore: async (backup, isForced, copyFiles) => {
      const how = { isForced, at: new Date() }
      const { verdict, aside } = await restorePostgres(backup, store, how, copyFiles)
      return { verdict, aside: aside === null ? null : `the schema ${aside}` }
    },
  }
}
