/** `headroom leader`: its arguments. The actions are loaded when called. */
import { Option, type Command } from 'commander'
import { withExamples } from '../command/command-shape.ts'
import { OUTPUT_FORMATS, type OutputFormat } from '../output/formats.ts'

export function addLeader(program: Command): void {
  const leader = program
    .command('leader')
    .description(
      'the controllers of the PostgreSQL store of CONTROLLER_STORE_URL: who leads, who can take over',
    )
  withExamples(
    leader
      .command('show', { isDefault: true })
      .description('show the leader and the standbys')
      .addOption(
        new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table'),
      ),
    'headroom leader',
    'headroom leader show -o json',
  ).action(async ({ output }: { readonly output: OutputFormat }) => {
    const { showLeader } = await import('./leader.ts')
    await showLeader(output)
  })
  withExamples(
    leader
      .command('resign')
      .description('let the leader hand over to a standby, and wait until that one leads')
      .option('--to <name>', 'the next leader; else any standby'),
    'headroom leader resign',
    'headroom leader resign --to head-2',
  ).action(async ({ to }: { readonly to?: string }) => {
    const { resignLeader } = await import('./leader.ts')
    await resignLeader(to ?? null)
  })
}
