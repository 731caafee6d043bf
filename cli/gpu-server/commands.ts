/** `headroom gpu-server`, `work` and `conformance`: their options. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { MAX_HOST_LINK_MIB_PER_S, MAX_HOST_MIB } from '../../protocol/limits.ts'
import { UsageError } from '../../services/exit-codes.ts'
import type { StandaloneOptions } from '../../services/standalone/standalone.ts'
import { calls, repeatable, type SetExit } from '../command/command-shape.ts'
import { idRange, mib, nodeUuid, time, timeIn, whole } from '../command/option-values.ts'
import { proxyAddress, proxyPorts, swapArenaSize } from './option-values.ts'

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
  'pinned host memory for swapped-out tasks on NVIDIA GPUs; requires driver 615, not yet tested on ' +
    'hardware (default: NODE_SWAP_ARENA, or none)',
).argParser(swapArenaSize)

export function addGpuServer(program: Command): void {
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
      'data folder that tasks may mount by name; read-only unless :rw is appended; may be repeated',
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
        const { standalone } = await import('../../services/standalone/standalone.ts')
        await standalone(options, process.env)
        return
      }
      if (options.socket !== undefined) throw new UsageError('--socket requires --standalone')
      const { gpuServer } = await import('../../services/gpu-server/gpu-server.ts')
      await gpuServer(options, process.env)
    })
}

export function addWork(program: Command, setExit: SetExit): void {
  program
    .command('work')
    .description('run a test task that alternates between busy and idle, or simulates a model server')
    .argument('<phase...>', 'busy=10s idle=2m, or serve=8000; add hooks to let the task swap its own VRAM')
    .action(calls(setExit, () => import('./work.ts'), 'work'))
}

export function addConformance(program: Command, setExit: SetExit): void {
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
    .action(calls(setExit, () => import('./conformance.ts'), 'conformance'))
}
