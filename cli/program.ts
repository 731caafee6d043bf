/** All commands of `headroom`: names, arguments, options. Their actions are loaded when called. */
import type { ServeOptions } from '../services/controller/serve.ts'
import { Command, Option } from 'commander'
import { calls, repeatable, type SetExit } from './command/command-shape.ts'
import { onOneLine } from './command/one-line.ts'
import type { StandaloneOptions } from '../services/standalone/standalone.ts'
import { addStatus, addTop } from './status/commands.ts'
import { addNode } from './nodes/commands.ts'
import { addTask, addTaskShortcuts, addWhyPending } from './tasks/commands.ts'
import { addRecoveryCommands } from './tasks/recovery-commands.ts'
import { addContextCommands } from './contexts/commands.ts'
import { addFileCommands } from './files/commands.ts'
import { addChannelCommands } from './channels/commands.ts'
import { addGateway } from './gateway/commands.ts'
import { addGroup } from './groups/commands.ts'
import { addConfig } from './config/commands.ts'
import { addDecisions, addEvents } from './events/commands.ts'
import { addTwinCommands } from './twin/twin-commands.ts'
import {
  idRange,
  mib,
  nodeUuid,
  proxyAddress,
  proxyPorts,
  swapArenaSize,
  time,
  timeIn,
  whole,
} from './command/option-values.ts'
import { packageVersion } from '../services/package-info.ts'
import { addWhatif } from './kubernetes/commands.ts'
import { addNatsCommands } from './nats/nats.ts'
import { addOperatorCommands } from './operator/commands.ts'
import { UsageError } from '../services/exit-codes.ts'
import { addProtocolCommands } from './gpu-server/protocol.ts'
import { addApply, addLease, addRun, addSubmit } from './run/run.ts'
import { addServiceCommands } from './doctor/service-commands.ts'
import { addLeader } from './leader/commands.ts'
import { addStoreCommands } from './store/store-commands.ts'
import { addSimCommands } from './sim/sim.ts'
import { addSecretCommands } from './tokens/secret.ts'
import { addAudit, addTokenCommands } from './tokens/token.ts'
import { addTraceCommands } from './trace/trace.ts'
import { MAX_HOST_LINK_MIB_PER_S, MAX_HOST_MIB, MAX_VRAM_MIB } from '../protocol/limits.ts'

export function programOf(setExit: SetExit): Command {
  const program = new Command('headroom')
    .description('Runs GPU tasks with VRAM overcommit and fair swapping, and simulates clusters')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(onOneLine(text)) })
  program.commandsGroup('Cluster:')
  addServe(program)
  addGpuServer(program)
  addLive(program, setExit)
  addStatus(program, setExit)
  addTop(program, setExit)
  addNode(program, setExit)
  addGroup(program, setExit)
  addConfig(program, setExit)
  addEvents(program, setExit)
  addDecisions(program, setExit)
  addWhyPending(program, setExit)
  program.commandsGroup('Tasks:')
  addRun(program, setExit)
  addSubmit(program, setExit)
  addApply(program, setExit)
  addLease(program, setExit)
  addTaskShortcuts(program, setExit)
  addTask(program, setExit)
  addFileCommands(program, setExit)
  addChannelCommands(program, setExit)
  program.commandsGroup('Planning and simulation:')
  addWhatif(program, setExit)
  addTwinCommands(program, setExit)
  addSimCommands(program, setExit)
  addTraceCommands(program, setExit)
  program.commandsGroup('Access:')
  addContextCommands(program, setExit)
  addTokenCommands(program, setExit)
  addSecretCommands(program, setExit)
  addAudit(program, setExit)
  program.commandsGroup('Operation:')
  addStoreCommands(program, setExit)
  addLeader(program, setExit)
  addRecoveryCommands(program, setExit)
  addNatsCommands(program)
  addGateway(program, setExit)
  addOperatorCommands(program, setExit)
  program.commandsGroup('Development:')
  addWork(program, setExit)
  addConformance(program, setExit)
  addProtocolCommands(program)
  program.commandsGroup('Help:').helpCommand(true)
  addServiceCommands(program, setExit)
  return program
}

function addServe(program: Command): void {
  program
    .command('serve')
    .description(
      'run the controller with its web page, for the GPU servers on the broker at CONTROLLER_NATS_URL or ' +
        'for a simulated fleet in real time',
    )
    .option(
      '--accept-loss <mark>',
      'start once although the store went back in time; MARK is in the error message',
    )
    .option(
      '--new-secrets-key',
      'start once with a new key for secrets: stored secrets are lost, and tasks that need them cannot start',
    )
    .action(async (options: ServeOptions) => {
      const { serve } = await import('../services/controller/serve.ts')
      await serve(process.env, options)
    })
}

const PROXY_PORTS = new Option(
  '--proxy-ports <from-to>',
  'ports on which clients reach tasks, even swapped-out tasks (default: NODE_PROXY_PORTS, or none)',
).argParser(proxyPorts)
const PROXY_ADDRESS = new Option(
  '--proxy-address <address>',
  'IP address of this host for these ports (default: NODE_PROXY_ADDRESS)',
).argParser(proxyAddress)

const SWAP_ARENA = new Option(
  '--swap-arena <size>',
  'pinned host memory for swapped-out tasks of NVIDIA GPUs; requires driver 615, not yet tested on ' +
    'hardware (default: NODE_SWAP_ARENA, or none)',
).argParser(swapArenaSize)

function addGpuServer(program: Command): void {
  program
    .command('gpu-server')
    .description(
      'add the GPUs of this host to a cluster through the broker at CONTROLLER_NATS_URL; tasks continue ' +
        'when the server stops',
    )
    .addOption(
      new Option('--device <kind>', 'kind of GPUs: NVIDIA GPUs, or GPUs declared in a file')
        .choices(['auto', 'nvidia', 'process'])
        .default('auto'),
    )
    .option('--inventory <file>', 'file that declares the GPUs for --device process (YAML or JSON)')
    .option('--allow-exec', 'run the commands of tasks; otherwise only leases are accepted')
    .option(
      '--allow-attach',
      'allow owners to run commands in their running tasks and to connect to their ports (exec, ' +
        'port-forward)',
    )
    .addOption(
      new Option(
        '--task-uids <from-to>',
        'when run as root: range of user IDs, one for each attempt (default: 200000-201023)',
      ).argParser(idRange),
    )
    .option(
      '--task-user <user>',
      'when run as root: run all tasks as this user (a name, uid:gid, or root for full privileges)',
    )
    .option(
      '--tasks-as-me',
      'when not run as root: run tasks as the user of the server; tasks can then read the key and the ' +
        'state of the server',
    )
    .option(
      '--work-dir <folder>',
      'folder for the working directories of attempts (default: work/ in NODE_STATE_DIR)',
    )
    .option(
      '--host-swap-mib <size>',
      'host memory for swapped-out tasks (default: half of the host memory, or the value in the inventory)',
      mib(0, MAX_HOST_MIB),
    )
    .option(
      '--host-link-mib-per-s <number>',
      'measured total bandwidth of copies between GPUs and host memory, for simulations of this node',
      whole(1, MAX_HOST_LINK_MIB_PER_S),
    )
    .addOption(
      new Option('--idle-after <time>', 'time without work after which a task counts as idle')
        .argParser(time)
        .default(5_000, '5s'),
    )
    .option('--stop-tasks', 'also stop the tasks when a signal stops the server')
    .addOption(
      new Option(
        '--container-runtime <name>',
        'container engine for tasks with an image; auto selects the available engine',
      )
        .choices(['auto', 'docker', 'podman', 'apptainer', 'none'])
        .default('auto'),
    )
    .addOption(
      new Option('--container-pull <policy>', 'when to pull images')
        .choices(['missing', 'always', 'never'])
        .default('missing'),
    )
    .option(
      '--mount <name=folder>',
      'data folder that tasks may mount by name; read-only unless it ends in :rw; may be repeated',
      repeatable,
      [],
    )
    .addOption(PROXY_PORTS)
    .addOption(PROXY_ADDRESS)
    .addOption(SWAP_ARENA)
    .option(
      '--standalone',
      'run without a separate controller or broker: this process also runs the controller, on a Unix socket',
    )
    .option('--socket <path>', 'Unix socket for --standalone (default: in /run/headroom or XDG_RUNTIME_DIR)')
    .action(async (options: StandaloneOptions & { readonly standalone?: boolean }) => {
      if (options.standalone === true) {
        const { standalone } = await import('../services/standalone/standalone.ts')
        await standalone(options, process.env)
        return
      }
      if (options.socket !== undefined) throw new UsageError('--socket requires --standalone')
      const { gpuServer } = await import('../services/gpu-server/gpu-server.ts')
      await gpuServer(options, process.env)
    })
}

function addLive(program: Command, setExit: SetExit): void {
  program
    .command('live')
    .description(
      'run a broker, a controller and GPU servers as real processes on this machine, to try Headroom',
    )
    .option('--servers <n>', 'number of servers', whole(1, 64), 4)
    .option('--gpus <n>', 'declared GPUs per server', whole(1, 16), 1)
    .option('--vram <size>', 'declared VRAM of each GPU', mib(1, MAX_VRAM_MIB), 24_576)
    .option('--overcommit <percent>', 'default VRAM overcommit', whole(0, 1_000), 100)
    .addOption(
      new Option('--idle <time>', 'idle time after which a task may be swapped out; without a unit: seconds')
        .argParser(timeIn('s', 1_000, 86_400_000))
        .default(10_000, '10s'),
    )
    .action(calls(setExit, () => import('../services/live/live.ts'), 'live'))
}

function addWork(program: Command, setExit: SetExit): void {
  program
    .command('work')
    .description('run a test task that alternates between busy and idle, or simulates a model server')
    .argument('<phase...>', 'busy=10s idle=2m, or serve=8000; with hooks, the task moves its VRAM itself')
    .action(calls(setExit, () => import('./gpu-server/work.ts'), 'work'))
}

function addConformance(program: Command, setExit: SetExit): void {
  program
    .command('conformance')
    .description(
      'test whether a GPU server follows the rules of the protocol; the server must not run tasks, and ' +
        'no controller may use its broker',
    )
    .requiredOption('--node <id>', 'UUID of the server', nodeUuid)
    .option('--nats <url>', 'URL of the broker (default: CONTROLLER_NATS_URL)')
    .addOption(
      new Option('--heartbeat <time>', 'heartbeat interval of the server; without a unit: milliseconds')
        .argParser(timeIn('ms', 100, 60_000))
        .default(500, '500ms'),
    )
    .addOption(
      new Option('--lease <time>', 'run lease of the server; without a unit: milliseconds')
        .argParser(timeIn('ms', 500, 86_400_000))
        .default(4_000, '4s'),
    )
    .option('--seed <text>', 'seed of the injected faults, to repeat a run')
    .option('--only <rule>', 'test only this rule, for example R3')
    .option('--json', 'print the report as JSON')
    .action(calls(setExit, () => import('./gpu-server/conformance.ts'), 'conformance'))
}
