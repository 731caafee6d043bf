/** `headroom store migrate`: from SQLite to PostgreSQL. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { migrateToPostgres } from '../../controller/adapters/postgres/commands.ts'
import { describePlace } from '../../controller/adapters/postgres/store-url.ts'
import { openWorkdirs } from '../../controller/adapters/sqlite/open-workdirs.ts'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { postgresMarkBase } from '../../services/controller/open-store.ts'
import { copyFiles } from '../../services/files/copied-files.ts'
import { createFolderFiles, FILES_FOLDER } from '../../services/files/folder-files.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'
import { plural } from '../output/figures.ts'
import type { StoreOptions } from './store-access.ts'
import { contentText } from './store-path.ts'

/** The URL is not an argument, because every user of the host could read its password there. */
export async function migrateStore(options: StoreOptions): Promise<void> {
  const settings = readSettings(process.env)
  const { storePlace: place } = settings
  if (place === null) throw new UsageError('set CONTROLLER_STORE_URL to the URL of the empty database')
  const dataDir = resolve(options.dataDir ?? settings.dataDir)
  const path = join(dataDir, STORE_FILE)
  if (!existsSync(path)) throw new UsageError(`no store at ${path}: specify its folder with --data-dir`)
  const store = { place, markBase: postgresMarkBase({ dataDir }) }
  const files = createFolderFiles(join(dataDir, FILES_FOLDER))
  let folders = ''
  const { verdict, aside } = await migrateToPostgres(path, store, new Date(), async (to) => {
    const { complete, incomplete } = await copyFiles(files, to, openWorkdirs(path))
    if (complete.length > 0)
      folders += `it also contains the uploaded folders of ${plural(complete.length, 'open task')}\n`
    if (incomplete.length > 0)
      folders +=
        `files are missing from the uploaded folders (${files.name}) of ` +
        `${plural(incomplete.length, 'open task')}\n`
  })
  process.stdout.write(
    `${describePlace(place)} contains ${contentText(verdict)} from ${path}\n${folders}` +
      `the SQLite store is now at ${aside ?? path}\n` +
      'to finish, set CONTROLLER_STORE_URL and start the controller with the same data folder\n',
  )
}
