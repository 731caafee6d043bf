/** `headroom login` and `headroom context …`: arguments and options. */
import { Option, type Command } from 'commander'
import { calls, withExamples, type SetExit } from '../command/command-shape.ts'
import { OUTPUT_FORMATS } from '../output/formats.ts'

export function addContextCommands(program: Command, setExit: SetExit): void {
  withExamples(
    program
      .command('login')
      .description(
        'store the URL of a controller and a token as a context; reads the token from stdin or the terminal',
      )
      .argument('[url]', 'URL of the controller (default: HEADROOM_URL, or http://127.0.0.1:30080)')
      .option('--name <name>', 'name of the context (default: host and port)'),
    'headroom login https://gpus.example:30080',
    'headroom login https://gpus.example:30080 --name lab < token.txt',
  ).action(calls(setExit, () => import('./login.ts'), 'login'))
  const context = program.command('context').description('stored controllers and tokens (see headroom login)')
  withExamples(
    context
      .command('list')
      .description('list the contexts, without their tokens')
      .addOption(
        new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table'),
      ),
    'headroom context list',
  ).action(calls(setExit, () => import('./contexts.ts'), 'contextList'))
  withExamples(
    context
      .command('use')
      .description('make a context the current one')
      .argument('<name>', 'name of the context'),
    'headroom context use lab',
  ).action(calls(setExit, () => import('./contexts.ts'), 'contextUse'))
  withExamples(
    context
      .command('remove')
      .description('remove a context and its token from this machine; the token stays valid')
      .argument('<name>', 'name of the context'),
    'headroom context remove lab',
  ).action(calls(setExit, () => import('./contexts.ts'), 'contextRemove'))
}
