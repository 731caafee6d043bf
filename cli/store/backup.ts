import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { backUp } from '../../controller/adapters/sqlite/backup.ts'
import { UsageError } from '../../services/exit-codes.ts'
import type { StoreOptions } from './store-path.ts'
import { BUSY_TIMEOUT_MS, storePath } from './store-path.ts'

const NAME = /^headroom-\d{4}-\d\d-\d\dT[\d-]+Z\.db$/

/** @throws UsageError, or StoreFault, each one line. */
export async function backup(
  target: string,
  options: StoreOptions & { readonly keep?: number },
): Promise<void> {
  const source = storePath(options)
  if (!existsSync(source)) throw new UsageError(`no store at ${source}: name its folder with --data-dir`)
  const isFolder = target.endsWith('/') || (existsSync(target) && statSync(target).isDirectory())
  if (options.keep !== undefined && !isFolder) throw new UsageError('--keep requires a folder')
  const file = isFolder
    ? join(resolve(target), `headroom-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`)
    : resolve(target)
  if (isFolder && !existsSync(target)) throw new UsageError(`folder ${target} not found`)
  if (existsSync(file)) throw new UsageError(`${file} already exists: name another file`)
  backUp(source, file, BUSY_TIMEOUT_MS)
  const removed = options.keep === undefined ? 0 : removeAllBut(options.keep, resolve(target))
  process.stdout.write(
    `${file} (${Math.ceil(statSync(file).size / 1024)} ` +
      `KiB)${removed > 0 ? `, ${removed} older removed` : ''}\n`,
  )
}

/** Names begin with the time, so they sort by age. */
function removeAllBut(keep: number, folder: string): number {
  const copies = readdirSync(folder)
    .filter((name) => NAME.test(name))
    .sort((a, b) => (a < b ? 1 : -1))
  const old = copies.slice(keep)
  for (const name of old) rmSync(join(folder, name))
  return old.length
}
