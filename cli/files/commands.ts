/** `headroom artifacts` and `headroom cp`. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, remote, withExamples, withServer, type SetExit } from '../command/command-shape.ts'
import { TASK_ARGUMENT } from '../command/task-named.ts'

export function addFileCommands(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('artifacts')
        .description('list the files in the work folder of a task, even while the task runs')
        .argument('<task>', TASK_ARGUMENT)
        .argument('[path]', 'a folder or file in the work folder'),
    ),
    'headroom artifacts train',
    'headroom artifacts 0b6f4c1e out -o json',
  ).action(calls(setExit, () => import('./artifacts.ts'), 'artifacts'))
  withExamples(
    withServer(
      program
        .command('cp')
        .description('copy a file or folder from the work folder of a task to this machine')
        .argument(
          '<task:path>',
          'the task, a colon, and a path in its work folder (no path: the whole folder)',
        )
        .argument('<target>', 'target folder, or name of the copy; - prints a file to stdout'),
    ),
    'headroom cp train:out/model.pt .',
    'headroom cp 0b6f4c1e:result.json - | jq .',
  ).action(calls(setExit, () => import('./copy.ts'), 'copyFiles'))
}
