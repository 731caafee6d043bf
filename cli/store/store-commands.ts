/** `headroom backup`, `restore` and `verify`: their arguments. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, withExamples, type SetExit } from '../command/command-shape.ts'
import { folder, whole } from '../command/option-values.ts'
import type { StoreOptions } from './store-access.ts'

export function addStoreCommands(program: Command, setExit: SetExit): void {
  withExamples(
    onStore(
      program
        .command('backup')
        .description(
          'copy the store to TARGET, and the uploaded folders of open tasks to TARGET.files; the ' +
            'controller may be running; the copy is verified before it gets its final name',
        ),
    )
      .argument('<target>', 'a new file, or a folder in which the copy is named after the current time')
      .option('--keep <n>', 'if the target is a folder: number of newest copies to keep', whole(1, 10_000)),
    'headroom backup /backup/headroom.db',
    'headroom backup /backup/ --keep 7   # from cron, every night',
  ).action(async (target: string, options: StoreOptions & { readonly keep?: number }) => {
    const { backup } = await import('./store-path.ts')
    await backup(target, options)
  })
  withExamples(
    onStore(
      program
        .command('restore')
        .description('replace the store with a backup; the controller must be stopped'),
    )
      .argument('<backup>', 'a file created by headroom backup')
      .option('--force', 'move an existing store aside')
      .option('--dry-run', 'only show what would be lost, compared to the existing store and mark'),
    'headroom restore /backup/headroom.db --data-dir /var/lib/headroom --dry-run',
    'headroom restore /backup/headroom.db --data-dir /var/lib/headroom',
  ).action(
    async (file: string, options: StoreOptions & { readonly force?: boolean; readonly dryRun?: boolean }) => {
      const { restore } = await import('./store-path.ts')
      await restore(file, options)
    },
  )
  withExamples(
    onStore(
      program
        .command('verify')
        .description('check the integrity of the store, or of a backup; exits with 1 if a check fails'),
    ).argument('[file]', 'file to check (default: the store)'),
    'headroom verify',
    'headroom verify /backup/headroom.db',
  ).action(calls(setExit, () => import('./store-path.ts'), 'verify'))
  const store = program.command('store').description('store of a stopped controller')
  withExamples(
    onStore(
      store
        .command('migrate')
        .description(
          'move the SQLite store with its whole history into the empty PostgreSQL database at ' +
            'CONTROLLER_STORE_URL; the SQLite file is renamed',
        ),
    ),
    'CONTROLLER_STORE_URL=postgres://headroom@/headroom?host=/run/postgresql headroom store migrate',
  ).action(async (options: StoreOptions) => {
    const { migrateStore } = await import('./migrate-store.ts')
    await migrateStore(options)
  })
}

function onStore(command: Command): Command {
  return command.option(
    '--data-dir <folder>',
    'data folder of the controller (default: CONTROLLER_DATA_DIR, or ./data)',
    folder,
  )
}
