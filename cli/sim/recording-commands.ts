/** The `sim` commands for recordings of a live controller. What they do is loaded when one is called. */
import type { Command } from 'commander'
import { withExamples } from '../command-shape.ts'
import type { SimRecordOptions } from './sim-record.ts'
import type { SimRedecideOptions } from './sim-redecide.ts'

export function addRecordingCommands(sim: Command, setExit: (code: number) => void): void {
  const redecide = sim
    .command('redecide')
    .description(
      'the inputs that a live controller recorded, decided again: the same decisions, or the first that differs',
    )
    .argument('<recording>', 'CONTROLLER_DATA_DIR, its recording/, or one file of that to begin with')
    .option('--json', 'as JSON on stdout')
    .action(async (path: string, options: SimRedecideOptions) => {
      const { simRedecide } = await import('./sim-redecide.ts')
      setExit(await simRedecide(path, options))
    })
  withExamples(redecide, 'headroom sim redecide ./data/recording')
  const record = sim
    .command('record')
    .description(
      'a time range of the live history as a scenario: fleet, configuration, tasks, operator and faults as they were observed',
    )
    .option('--data <folder>', 'CONTROLLER_DATA_DIR of the controller, or a copy of its recording/', './data')
    .option(
      '--from <instant>',
      'when it begins, in UTC (2026-05-04T08:00:00Z); else when the first node is up',
    )
    .option('--to <instant>', 'when it ends; else where the recording ends')
    .option('--name <name>', 'of the scenario', 'recorded')
    .option('--out <file>', 'the scenario file; else stdout')
    .action(async (options: SimRecordOptions) => {
      const { simRecord } = await import('./sim-record.ts')
      setExit(await simRecord(options))
    })
  withExamples(
    record,
    'headroom sim record --data /var/lib/headroom --from 2026-05-04T08:00:00Z --to 2026-05-04T09:00:00Z --out incident.scenario.json',
  )
}
