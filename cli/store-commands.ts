/** `headroom backup`, `restore` and `verify`: their arguments. What they do is loaded when one is called. */
import type { Command } from 'commander'
import { withExamples, type SetExit } from './command-shape.ts'
import { folder, whole } from './option-values.ts'
import type { StoreOptions } from './store/store-path.ts'

export function addStoreCommands(program: Command, setExit: SetExit): void {
  withExamples(
    onStore(
      program
        .command('backup')
        .description(
          'copy the store, whether a controller runs on it or not; the copy is read back before it gets its name',
        ),
    )
      .argument(
        '<target>',
        'a file that is not there yet, or a folder: the copy is named after the time then',
      )
      .option('--keep <n>', 'in a folder: remove all but the newest copies of this kind', whole(1, 10_000)),
    'headroom backup /backup/headroom.db',
    'headroom backup /backup/ --keep 7   # from cron, every night',
  ).action(async (target: string, options: StoreOptions & { readonly keep?: number }) => {
    const { backup } = await import('./store/backup.ts')
    await backup(target, options)
  })
  withExamples(
    onStore(program.command('restore').description('make a backup the store; the controller must be stopped'))
      .argument('<backup>', 'a file that headroom backup made')
      .option('--force', 'a store that is there is put aside')
      .option('--dry-run', 'only say what would be lost, against the store and the mark that are there'),
    'headroom restore /backup/headroom.db --data-dir /var/lib/headroom --dry-run',
    'headroom restore /backup/headroom.db --data-dir /var/lib/headroom',
  ).action(
    async (file: string, options: StoreOptions & { readonly force?: boolean; readonly dryRun?: boolean }) => {
      const { restore } = await import('./store/restore.ts')
      await restore(file, options)
    },
  )
  withExamples(
    onStore(
      program
        .command('verify')
        .description(
          'is the store, or a backup, whole, and does what it says fit together? Ends with 1 when it does not',
        ),
    ).argument('[file]', 'else headroom.db in the data folder'),
    'headroom verify',
    'headroom verify /backup/headroom.db',
  ).action(async (file: string | undefined, options: StoreOptions) => {
    const { verify } = await import('./store/verify.ts')
    setExit(await verify(file, options))
  })
}

function onStore(command: Command): Command {
  return command.option('--data-dir <folder>', 'of the store (CONTROLLER_DATA_DIR, or else ./data)', folder)
}
