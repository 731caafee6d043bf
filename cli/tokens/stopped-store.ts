/** The store of a stopped controller: SQLite in a data folder, or PostgreSQL at CONTROLLER_STORE_URL. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { StoreFault, type Store } from '../../controller/ports/store.ts'
import { postgresMarkBase } from '../../services/controller/open-store.ts'
import { CommandFailure, EXIT_CONFLICT, UsageError } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'

/**
 * @param isExpected a missing store is a mistyped name; otherwise it is made
 * @throws UsageError, CommandFailure when a controller uses the store, StoreFault
 */
export async function withStoppedStore<T>(
  dataDir: string,
  isExpected: boolean,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { name, store } = openStopped(dataDir, isExpected)
  try {
    return await work(store)
  } catch (error) {
    if (!(error instanceof StoreFault) || !error.message.includes('another controller')) throw error
    throw new CommandFailure(
      `A controller is using ${name}: stop it, or run the command without --data-dir.`,
      EXIT_CONFLICT,
    )
  } finally {
    await store.close()
  }
}

function openStopped(dataDir: string, isExpected: boolean): { readonly name: string; readonly store: Store } {
  const log = (line: string): boolean => process.stderr.write(`${line}\n`)
  const { storePlace: place } = readSettings({ ...process.env, CONTROLLER_DATA_DIR: dataDir })
  if (place !== null) {
    const markBase = postgresMarkBase({ dataDir })
    const store = createPostgresStore({ place, markBase, isStoreExpected: isExpected, log })
    return { name: describePlace(place), store }
  }
  const path = resolve(join(dataDir, STORE_FILE))
  if (isExpected && !existsSync(path))
    throw new UsageError(`no store at ${path}: specify its folder with --data-dir`)
  return { name: dataDir, store: createSqliteStore({ dataDir, log }) }
}
