/** Commands of the digital twin: their options. Their actions are loaded when called. */
import type { Command } from 'commander'
import { remote, withServer, withExamples, type SetExit } from '../command/command-shape.ts'
import type { CommandOptions } from '../command/session.ts'
import type { SnapshotOptions } from './snapshot.ts'

export function addTwinCommands(program: Command, setExit: SetExit): void {
  addSnapshot(program, setExit)
  withExamples(
    remote(program.command('twin').description('show the accuracy of the twin’s forecasts')),
    'headroom twin',
    'headroom twin -o json | jq .scores',
  ).action(async (options: CommandOptions) => {
    const { twinState } = await import('./twin-accuracy.ts')
    setExit(await twinState(options))
  })
}

function addSnapshot(program: Command, setExit: SetExit): void {
  withExamples(
    withServer(
      program
        .command('snapshot')
        .description('save the live state as a scenario file, to continue with `headroom sim run`'),
    ).option('--out <file>', 'file to write; else stdout'),
    'headroom snapshot --out now.scenario.json',
    'headroom snapshot | jq .config',
  ).action(async (options: SnapshotOptions) => {
    const { snapshot } = await import('./snapshot.ts')
    setExit(await snapshot(options))
  })
}
