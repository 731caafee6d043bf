/** The `sim` commands for recordings of a live controller. What they do is loaded when one is called. */
import type { Command } from 'commander'
import { withExamples } from './command-shape.ts'
import type { SimRedecideOptions } from './sim-redecide.ts'

export function addRecordingCommands(sim: Command, setExit: (code: number) => void): void {
  const redecide = sim
    .command('redecide')
    .description('the inputs that a live controller recorded, decided again: the same decisions, or the first that differs')
    .argument('<recording>', 'a folder of a recording (recording/ in CONTROLLER_DATA_DIR), or one of its files to begin with')
    .option('--json', 'as JSON on stdout')
    .action(async (path: string, options: SimRedecideOptions) => {
      const { simRedecide } = await import('./sim-redecide.ts')
      setExit(await simRedecide(path, options))
    })
  withExamples(redecide, 'headroom sim redecide ./data/recording')
}
