/** All commands of `headroom`: names, arguments, options. What each does is loaded when it is called. */
import { Command, Option } from 'commander'
import type { SetExit } from './command-shape.ts'
import type { ConformanceOptions } from './conformance.ts'
import type { GpuServerCommandOptions } from './gpu-server.ts'
import { addOperatorCommands } from './operator.ts'
import type { LiveOptions } from './live.ts'
import { idRange, mib, nodeUuid, time, whole } from './option-values.ts'
import { packageVersion } from './package-info.ts'
import { addNatsCommands } from './nats.ts'
import { addProtocolCommands } from './protocol.ts'
import { addLease, addRun } from './run.ts'
import { addServiceCommands } from './service-commands.ts'
import { addStoreCommands } from './store-commands.ts'
import { addSimCommands } from './sim.ts'
import { addAudit, addTokenCommands } from './token.ts'
import { addTraceCommands } from './trace.ts'

export function programOf(setExit: SetExit): Command {
  const program = new Command('headroom')
    .description('Runs GPU tasks with VRAM overcommit and fair swapping, and simulates what it would do')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(onOneLine(text)) })
  program
    .command('serve')
    .description(
      'the controller with its page: for the servers at CONTROLLER_NATS_URL, or over a simulated fleet in real time',
    )
    .option(
      '--accept-loss <mark>',
      'start once on a store that went back in time: the mark that the refusal names',
    )
    .action(async ({ acceptLoss }: { readonly acceptLoss?: string }) => {
      const { serve } = await import('./serve.ts')
      await serve(process.env, acceptLoss)
    })
  addGpuServer(program)
  addRun(program, setExit)
  addLease(program, setExit)
  addLive(program, setExit)
  addOperatorCommands(program, setExit)
  addTokenCommands(program, setExit)
  addAudit(program, setExit)
  program
    .command('work')
    .description('a task to try a cluster with: busy and idle in turn')
    .argument('<phase...>', 'busy=10s, idle=2m')
    .action(async (phases: string[]) => {
      const { work } = await import('./work.ts')
      setExit(await work(phases))
    })
  addConformance(program, setExit)
  addServiceCommands(program, setExit)
  addStoreCommands(program, setExit)
  addTraceCommands(program, setExit)
  addNatsCommands(program)
  addProtocolCommands(program)
  addSimCommands(program, setExit)
  return program
}

function addGpuServer(program: Command): void {
  program
    .command('gpu-server')
    .description("this host's GPUs in a cluster, over the broker in CONTROLLER_NATS_URL; tasks outlive it")
    .addOption(
      new Option('--device <kind>', 'whose GPUs: those of the NVIDIA driver, or declared ones')
        .choices(['auto', 'nvidia', 'process'])
        .default('auto'),
    )
    .option('--inventory <file>', 'declares the GPUs of --device process (YAML or JSON)')
    .option('--allow-exec', 'run the commands of tasks; otherwise only leases are taken')
    .addOption(
      new Option(
        '--task-uids <from-to>',
        'as root: user ids from which each attempt gets one of its own; else 200000-201023',
      ).argParser(idRange),
    )
    .option(
      '--task-user <user>',
      'as root: run all tasks as this one user (a name, or uid:gid); root: as root, with all its rights',
    )
    .option(
      '--tasks-as-me',
      'not as root: run tasks as the user of the server, who can then read its key and state',
    )
    .option(
      '--work-dir <folder>',
      'holds a folder for each attempt, in which it begins; else work/ in NODE_STATE_DIR',
    )
    .option(
      '--host-swap-mib <size>',
      'host memory for swapped-out tasks; else half of it, or as the inventory says',
      mib(0, 1_073_741_824),
    )
    .option(
      '--host-link-mib-per-s <number>',
      'what all copies of this host together move through its memory, as measured; for simulations of it',
      whole(1, 16_777_216),
    )
    .addOption(
      new Option('--idle-after <time>', 'a task that is not seen to work for so long is idle')
        .argParser(time)
        .default(5_000, '5s'),
    )
    .option('--stop-tasks', 'when the server is stopped by a signal, its tasks end too')
    .action(async (options: GpuServerCommandOptions) => {
      const { gpuServer } = await import('./gpu-server.ts')
      await gpuServer(options, process.env)
    })
}

function addLive(program: Command, setExit: SetExit): void {
  program
    .command('live')
    .description('a broker, a controller and servers of real processes on this machine, to try them')
    .option('--servers <n>', 'how many', whole(1, 64), 4)
    .option('--gpus <n>', 'declared GPUs of each', whole(1, 16), 1)
    .option('--vram <size>', 'declared VRAM of each GPU', mib(1, 16_777_216), 24_576)
    .option('--overcommit <percent>', 'the default VRAM overcommit', whole(0, 1_000), 100)
    .option('--idle <seconds>', 'without use for so long, a task may be swapped out', whole(1, 86_400), 10)
    .action(async (options: LiveOptions) => {
      const { live } = await import('./live.ts')
      setExit(await live(options))
    })
}

function addConformance(program: Command, setExit: SetExit): void {
  program
    .command('conformance')
    .description(
      'which rules of the protocol a GPU server keeps; it must be empty, and no controller at its broker',
    )
    .requiredOption('--node <id>', 'UUID of the server', nodeUuid)
    .option('--nats <url>', 'the broker; else CONTROLLER_NATS_URL')
    .option('--heartbeat <ms>', 'how often it is told to speak', whole(100, 60_000), 500)
    .option('--lease <ms>', 'the run lease it is given', whole(500, 86_400_000), 4_000)
    .option('--seed <text>', 'repeats the faults of a run')
    .option('--only <rule>', 'one rule, R3')
    .option('--json', 'the report as JSON on stdout')
    .action(async (options: ConformanceOptions) => {
      const { conformance } = await import('./conformance.ts')
      setExit(await conformance(options))
    })
}

/** Commander puts its suggestion on a line of its own. */
function onOneLine(text: string): string {
  return `${text.trimEnd().replaceAll('\n', ' ')}\n`
}
