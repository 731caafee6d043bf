import { resolve } from 'node:path'
import { restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { UsageError } from '../exit-codes.ts'
import type { StoreOptions } from '../store-commands.ts'
import { BUSY_TIMEOUT_MS, requireFile, storePath } from './store-path.ts'

/** @throws UsageError, or StoreFault, each one line. */
export async function restore(file: string, options: StoreOptions & { readonly force?: boolean }): Promise<void> {
  const [backup, path] = [resolve(file), storePath(options)]
  requireFile(backup)
  if (backup === path) throw new UsageError(`${backup} is the store itself`)
  const { verdict, aside } = await restoreStore({
    backup,
    path,
    isForced: options.force ?? false,
    at: new Date(),
    busyTimeoutMs: BUSY_TIMEOUT_MS,
  })
  process.stdout.write(`${path} holds ${verdict.tasks} tasks, ${verdict.nodes} nodes and ${verdict.events} events of ${backup}\n`)
  if (aside !== null) process.stdout.write(`what was there is now ${aside}\n`)
}
