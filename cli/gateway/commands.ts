/** `headroom gateway`: its options. Its action is loaded when it is called. */
import { Option, type Command } from 'commander'
import { calls, repeatable, withExamples, withServer, type SetExit } from '../command/command-shape.ts'
import { timeWithin, whole } from '../command/option-values.ts'

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

export function addGateway(program: Command, setExit: SetExit): void {
  withExamples(
    withServer(
      program
        .command('gateway')
        .description('serve all tasks with an HTTP port at one address, as /OWNER/NAME/… (docs/serving.md)'),
    )
      .requiredOption(
        '--host-name <name>',
        'host name that clients use for the gateway; must differ from the host names of the controller; ' +
          'may be repeated',
        repeatable,
      )
      .option('--listen <address:port>', 'address for connections from clients', '127.0.0.1:30081')
      .option(
        '--admin <address:port>',
        'address of /metrics, /livez and /readyz, which require no token',
        '127.0.0.1:30082',
      )
      .addOption(
        new Option(
          '--hold <time>',
          'maximum time that a request waits for its task to start or be swapped in',
        )
          .argParser(timeWithin(SECOND_MS, HOUR_MS))
          .default(60_000, '60s'),
      )
      .option('--max-held <n>', 'maximum number of waiting requests per endpoint', whole(1, 10_000), 100)
      .option(
        '--same-host',
        'allow --host-name to be localhost or a host name of the controller ' + '(unsafe; for tests only)',
      ),
    'headroom gateway --host-name models.example.org --listen 0.0.0.0:30081 --token-file gateway.token',
  ).action(calls(setExit, () => import('./gateway.ts'), 'gateway'))
}
