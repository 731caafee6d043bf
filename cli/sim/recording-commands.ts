/** The `sim` commands for recordings of a live controller. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, withExamples } from '../command/command-shape.ts'

export function addRecordingCommands(sim: Command, setExit: (code: number) => void): void {
  const redecide = sim
    .command('redecide')
    .description(
      'replay the recorded inputs of a live controller, and report the first decision that differs',
    )
    .argument('<recording>', 'CONTROLLER_DATA_DIR, its recording/, or the first file to read there')
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-redecide.ts'), 'simRedecide'))
  withExamples(redecide, 'headroom sim redecide ./data/recording')
  const record = sim
    .command('record')
    .description(
      'convert a time range of the live history to a scenario: fleet, configuration, tasks, operator ' +
        'and faults as observed',
    )
    .option('--data <folder>', 'CONTROLLER_DATA_DIR of the controller, or a copy of its recording/', './data')
    .option('--from <instant>', 'start, in UTC (2026-05-04T08:00:00Z); else when the first node is up')
    .option('--to <instant>', 'end; else the end of the recording')
    .option('--name <name>', 'name of the scenario', 'recorded')
    .option('--out <file>', 'the scenario file; else stdout')
    .action(calls(setExit, () => import('./sim-record.ts'), 'simRecord'))
  withExamples(
    record,
    'headroom sim record --data /var/lib/headroom --from 2026-05-04T08:00:00Z --to 2026-05-04T09:00:00Z ' +
      '--out incident.scenario.json',
  )
}
