/** `headroom secret …`: its options. Its actions are loaded when called. */
import type { Command } from 'commander'
import { calls, remote, withExamples, type SetExit } from '../command/command-shape.ts'

export function addSecretCommands(program: Command, setExit: SetExit): void {
  const secret = program
    .command('secret')
    .description('encrypted values that your tasks receive as environment variables')
  withExamples(
    remote(
      secret
        .command('set')
        .description('set a secret; the value is read from the terminal, or from stdin')
        .argument('<name>', 'name of the secret'),
    ),
    'headroom secret set HF_TOKEN < token.txt',
  ).action(calls(setExit, () => import('./secrets.ts'), 'secretSet'))
  withExamples(
    remote(secret.command('list').description('list your secrets, without their values')),
    'headroom secret list',
  ).action(calls(setExit, () => import('./secrets.ts'), 'secretList'))
  withExamples(
    remote(
      secret
        .command('delete')
        .description('delete secrets; tasks that are already submitted keep the values')
        .argument('<name...>', 'names'),
    ),
    'headroom secret delete HF_TOKEN',
  ).action(calls(setExit, () => import('./secrets.ts'), 'secretDelete'))
}
