/** `headroom status` and `headroom top`: arguments and options. */
import { Option, type Command } from 'commander'
import { calls, remote, withExamples, type SetExit } from '../command/command-shape.ts'
import { timeWithin } from '../command/option-values.ts'

export function addStatus(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('status')
        .description('show an overview of the cluster; exits with 1 if the controller is not ready'),
    ),
    'headroom status',
    'headroom status -o json | jq .summary.vram',
  ).action(calls(setExit, () => import('./status.ts'), 'status'))
}

export function addTop(program: Command, setExit: SetExit): void {
  withExamples(
    remote(program.command('top').description('show nodes and tasks, updated until Ctrl-C'))
      .addOption(
        new Option('--interval <time>', 'time between updates')
          .argParser(timeWithin(100, 3_600_000))
          .default(2_000, '2s'),
      )
      .option('--once', 'print once and exit, even on a terminal'),
    'headroom top',
    'headroom top --interval 500ms',
    'headroom top --once -o wide',
  ).action(calls(setExit, () => import('./top.ts'), 'top'))
}
