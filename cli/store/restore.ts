import { resolve } from 'node:path'
import { requireWell, restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { previewRestore } from '../../controller/adapters/sqlite/restore-preview.ts'
import { UsageError } from '../../services/exit-codes.ts'
import type { StoreOptions } from './store-path.ts'
import { previewText } from './preview-text.ts'
import { BUSY_TIMEOUT_MS, requireFile, storePath } from './store-path.ts'

export interface RestoreCommandOptions extends StoreOptions {
  readonly force?: boolean
  readonly dryRun?: boolean
}

/** @throws UsageError, or StoreFault, each one line. */
export async function restore(file: string, options: RestoreCommandOptions): Promise<void> {
  const [backup, path] = [resolve(file), storePath(options)]
  requireFile(backup)
  if (backup === path) throw new UsageError(`${backup} is the store itself`)
  if (options.dryRun === true) {
    await requireWell(backup)
    process.stdout.write(previewText(backup, path, await previewRestore(backup, path)))
    return
  }
  const { verdict, aside } = await restoreStore({
    backup,
    path,
    isForced: options.force ?? false,
    at: new Date(),
    busyTimeoutMs: BUSY_TIMEOUT_MS,
  })
  process.stdout.write(
    `${path} contains ${verdict.tasks} tasks, ${verdict.nodes} nodes and ${verdict.events} events of ` +
      `${backup}\n`,
  )
  if (aside !== null) process.stdout.write(`the previous store is now ${aside}\n`)
  process.stdout.write(
    'the next controller starts in recovery: it contacts every node before it places, requeues or gives ' +
      'up a task\n',
  )
}
