/** The path of the store for these commands. */
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { readSettings } from '../../services/settings/settings.ts'

export interface StoreOptions {
  readonly dataDir?: string
}

/** Wait for a file that another program has locked. */
export const BUSY_TIMEOUT_MS = 2_000

export function storePath({ dataDir }: StoreOptions): string {
  return resolve(join(dataDir ?? readSettings(process.env).dataDir, STORE_FILE))
}

/**
 * @param hint what to name instead
 * @throws UsageError
 */
export function requireFile(path: string, hint = ''): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`file ${path} not found${hint}`)
  if (!found.isFile()) throw new UsageError(`${path} is not a file${hint}`)
}
