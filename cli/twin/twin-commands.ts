/** Commands of the digital twin: their options. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, remote, withServer, withExamples, type SetExit } from '../command/command-shape.ts'

export function addTwinCommands(program: Command, setExit: SetExit): void {
  addSnapshot(program, setExit)
  withExamples(
    remote(program.command('twin').description('show the forecast accuracy of the twin')),
    'headroom twin',
    'headroom twin -o json | jq .scores',
  ).action(calls(setExit, () => import('./twin-accuracy.ts'), 'twinState'))
}

function addSnapshot(program: Command, setExit: SetExit): void {
  withExamples(
    withServer(
      program
        .command('snapshot')
        .description('save the live state as a scenario file, to continue with `headroom sim run`'),
    ).option('--out <file>', 'file to write (default: stdout)'),
    'headroom snapshot --out now.scenario.json',
    'headroom snapshot | jq .config',
  ).action(calls(setExit, () => import('./twin-accuracy.ts'), 'snapshot'))
}
