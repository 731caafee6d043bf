/** `headroom exec` and `headroom port-forward`. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, withExamples, withServer, type SetExit } from '../command/command-shape.ts'
import { TASK_ARGUMENT } from '../command/task-named.ts'

export function addChannelCommands(program: Command, setExit: SetExit): void {
  withExamples(
    withServer(
      program
        .command('exec')
        .description(
          'run a command in a running task of yours, as the task runs, with its output and exit code here',
        )
        .argument('<task>', TASK_ARGUMENT)
        .argument('[command...]', 'the command, after --; not interpreted by a shell')
        .option('-i, --stdin', 'pass standard input to the command')
        .option('-t, --tty', 'give the command a terminal: this one, with its input'),
    ),
    'headroom exec train -- nvidia-smi',
    'headroom exec -t train -- bash',
    'tar c data | headroom exec -i 0b6f4c1e -- tar x',
  ).action(calls(setExit, () => import('./exec.ts'), 'exec'))
  withExamples(
    withServer(
      program
        .command('port-forward')
        .description('connect ports of this machine to ports on which a running task of yours listens')
        .argument('<task>', TASK_ARGUMENT)
        .argument('<port...>', 'LOCAL:PORT, or PORT for the same number here; LOCAL 0 takes a free one'),
    ),
    'headroom port-forward notebook 8888',
    'headroom port-forward serve 18000:8000',
  ).action(calls(setExit, () => import('./port-forward.ts'), 'portForward'))
}
