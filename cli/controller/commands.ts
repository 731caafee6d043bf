/** `headroom serve` and `headroom live`: their options. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { ServeOptions } from '../../services/controller/serve.ts'
import { calls, type SetExit } from '../command/command-shape.ts'
import { mib, timeIn, whole } from '../command/option-values.ts'

export function addServe(program: Command): void {
  program
    .command('serve')
    .description(
      'run the controller and its web page, for GPU servers connected to the broker at ' +
        'CONTROLLER_NATS_URL or for a simulated fleet in real time',
    )
    .option(
      '--accept-loss <mark>',
      'start once although the store has lost its latest changes; MARK is in the error message',
    )
    .option(
      '--new-secrets-key',
      'start once with a new key for secrets: stored secrets are lost, and tasks that need them cannot start',
    )
    .action(async (options: ServeOptions) => {
      const { serve } = await import('../../services/controller/serve.ts')
      await serve(process.env, options)
    })
}

export function addLive(program: Command, setExit: SetExit): void {
  program
    .command('live')
    .description('try Headroom on this machine: run a broker, a controller and GPU servers as real processes')
    .option('--servers <n>', 'number of servers', whole(1, 64), 4)
    .option('--gpus <n>', 'declared GPUs per server', whole(1, 16), 1)
    .addOption(
      new Option('--vram <size>', 'declared VRAM of each GPU')
        .argParser(mib(1, MAX_VRAM_MIB))
        .default(24_576, '24Gi'),
    )
    .option('--overcommit <percent>', 'default VRAM overcommit', whole(0, 1_000), 100)
    .addOption(
      new Option('--idle <time>', 'idle time after which a task may be swapped out; without a unit: seconds')
        .argParser(timeIn('s', 1_000, 86_400_000))
        .default(10_000, '10s'),
    )
    .action(calls(setExit, () => import('../../services/live/live.ts'), 'live'))
}
