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
          'run a command inside one of your running tasks, with the environment of the task; prints the ' +
            'output and exits with the exit code of the command',
        )
        .argument('<task>', TASK_ARGUMENT)
        .argument('[command...]', 'command to run, after --; it is not interpreted by a shell')
        .option('-i, --stdin', 'pass standard input to the command')
        .option('-t, --tty', 'allocate a terminal for the command and connect it to this one'),
    ),
    'headroom exec train -- nvidia-smi',
    'headroom exec -t train -- bash',
    'tar c data | headroom exec -i 0b6f4c1e -- tar x',
  ).action(calls(setExit, () => import('./exec.ts'), 'exec'))
  withExamples(
    withServer(
      program
        .command('port-forward')
        .description('forward local ports to ports of one of your running tasks')
        .argument('<task>', TASK_ARGUMENT)
        .argument(
          '<port...>',
          'LOCAL:PORT, or PORT for the same number on both sides; LOCAL 0 picks a free port',
        ),
    ),
    'headroom port-forward notebook 8888',
    'headroom port-forward serve 18000:8000',
  ).action(calls(setExit, () => import('./port-forward.ts'), 'portForward'))
}
