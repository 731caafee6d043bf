/** `headroom leader`: its arguments. The actions are loaded when called. */
import type { Command } from 'commander'
import { calls, remote, withExamples, withServer, type SetExit } from '../command/command-shape.ts'

export function addLeader(program: Command, setExit: SetExit): void {
  const leader = program
    .command('leader')
    .description(
      'show or change the leader among the controllers of a PostgreSQL store; queries the database if ' +
        'CONTROLLER_STORE_URL is set and --server is not, otherwise a controller',
    )
  withExamples(
    remote(
      leader
        .command('show', { isDefault: true })
        .description('show the leader, and the standbys with their lag'),
    ),
    'headroom leader',
    'headroom leader show -o json',
  ).action(calls(setExit, () => import('./leader.ts'), 'showLeader'))
  withExamples(
    withServer(
      leader
        .command('resign')
        .description('hand leadership over to a standby, and wait until it leads (requires role admin)'),
    ).option('--to <name>', 'standby that becomes the leader (default: any)'),
    'headroom leader resign',
    'headroom leader resign --to head-2',
  ).action(calls(setExit, () => import('./leader.ts'), 'resignLeader'))
}
