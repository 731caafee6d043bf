/** The verbs about the live cluster run on: their options. What they do is loaded when one is called. */
import type { Command } from 'commander'
import { remote, withServer, withExamples, type SetExit } from './command-shape.ts'
import type { CommandOptions } from './operator/session.ts'
import type { SnapshotOptions } from './operator/snapshot.ts'

export function addTwinCommands(program: Command, setExit: SetExit): void {
  addSnapshot(program, setExit)
  withExamples(
    remote(program.command('twin').description('how well the twin foretells what the cluster does')),
    'headroom twin',
    'headroom twin -o json | jq .scores',
  ).action(async (options: CommandOptions) => {
    const { twinState } = await import('./operator/twin.ts')
    setExit(await twinState(options))
  })
}

function addSnapshot(program: Command, setExit: SetExit): void {
  withExamples(
    withServer(
      program
        .command('snapshot')
        .description('the live state as a scenario file, to run on with `headroom sim run`'),
    ).option('--out <file>', 'where it is written; else it is printed'),
    'headroom snapshot --out now.scenario.json',
    'headroom snapshot | jq .config',
  ).action(async (options: SnapshotOptions) => {
    const { snapshot } = await import('./operator/snapshot.ts')
    setExit(await snapshot(options))
  })
}
