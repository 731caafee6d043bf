/** Where the store of these commands is. */
import { join, resolve } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { readSettings } from '../settings.ts'
import type { StoreOptions } from '../store-commands.ts'

/** How long a file that another program has locked is waited for. */
export const BUSY_TIMEOUT_MS = 2_000

export function storePath({ dataDir }: StoreOptions): string {
  return resolve(join(dataDir ?? readSettings(process.env).dataDir, STORE_FILE))
}
