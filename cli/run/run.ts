/** `headroom run` and `headroom lease`: their options. Their actions are loaded when called. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import {
  asShortcut,
  calls,
  DRY_RUN,
  remote,
  repeatable,
  withServer,
  withExamples,
  type SetExit,
} from '../command/command-shape.ts'
import { mib, priority, timeout, timeWithin, vram, whole } from '../command/option-values.ts'
import type { SwapEngine } from '../../protocol/message-fields.ts'
import { ENGINE_KINDS, REQUESTED_SWAP_METHODS } from '../../protocol/units.ts'
import {
  MAX_CPUS,
  MAX_HOST_MIB,
  MAX_PIDS,
  MAX_VRAM_MIB,
  MIN_MEMORY_MIB,
  MIN_PIDS,
} from '../../protocol/limits.ts'

/** Equals the limit in controller/api/tasks/schema.ts. */
const MAX_GPUS = 1024
const MAX_RUNTIME_SECONDS = 31_536_000
const MAX_REQUEUES = 1000
const MAX_IDLE_SWAP_OUT_SECONDS = 86_400

/** A number, or `none` for no limit. */
function requeues(text: string): number | null {
  return text === 'none' ? null : whole(0, MAX_REQUEUES)(text)
}

const MAX_STOP_GRACE_MS = 3_600_000

/** Whole seconds, rounded up. */
function stopGraceSeconds(text: string): number {
  return Math.ceil(timeWithin(0, MAX_STOP_GRACE_MS)(text) / 1000)
}

function idleSeconds(text: string): number {
  if (/^\d+$/.test(text)) return whole(1, MAX_IDLE_SWAP_OUT_SECONDS)(text)
  return Math.ceil(timeWithin(1, MAX_IDLE_SWAP_OUT_SECONDS * 1000)(text) / 1000)
}

/** A time, rounded up to whole seconds, or a number of seconds. */
function runtimeSeconds(text: string): number {
  if (/^\d+$/.test(text)) return whole(1, MAX_RUNTIME_SECONDS)(text)
  return Math.ceil(timeWithin(1, MAX_RUNTIME_SECONDS * 1000)(text) / 1000)
}

export function addRun(program: Command, setExit: SetExit): void {
  withExamples(
    running(
      program
        .command('run')
        .description(
          'run a command on a GPU server, print its output and exit with its exit code; Ctrl-C cancels ' +
            'the task',
        ),
    )
      .addOption(fileOption())
      .option('-d, --detach', 'print the task ID and return; the task keeps running')
      .addOption(
        new Option(
          '--timeout <time>',
          'cancel the task if it has not ended after this time, waiting time included, and exit with ' +
            'code 124',
        )
          .argParser(timeout)
          .conflicts('detach'),
      )
      .addOption(
        new Option(
          '--fail-if-never-fits',
          'cancel the task if it can start only after a change to the task or the cluster, and exit with ' +
            'code 1',
        ).conflicts('detach'),
      ),
    'headroom run --vram 16Gi -- python train.py --epochs 3',
    'headroom run --vram 24Gi --gpus 2 --priority P0 --noswap --group training -- torchrun train.py',
    "headroom run --vram 8Gi --env HF_HOME=/data/hf -- sh -c 'python eval.py | tee out.txt'",
    'headroom run --vram 8Gi --detach --label team=vision -- python train.py',
    'headroom run --vram 8Gi --workdir . -- python train.py',
    'headroom run -f train.task.yaml',
  ).action(calls(setExit, () => import('./run-task.ts'), 'runTask'))
}

/** Options that a task file replaces. */
const DESCRIBING = [
  'vram',
  'gpus',
  'noswap',
  'swap',
  'priority',
  'name',
  'exclusive',
  'image',
  'wakeOnRequest',
  'swapMethod',
  'engine',
  'workdir',
  'cwd',
  'memory',
  'cpus',
  'pidsLimit',
  'vramLimit',
  'idleSwapOut',
  'keepWarm',
  'maxRuntime',
  'stopGrace',
  'onNodeLoss',
  'maxRequeues',
]

export function addApply(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('apply')
        .description(
          'create the task that a file describes, or update your open task with the same name to match ' +
            'the file',
        ),
    )
      .requiredOption('-f, --file <file>', 'task file (YAML or JSON, `headroom task schema`); - for stdin')
      .option('--dry-run', DRY_RUN),
    'headroom apply -f train.task.yaml --dry-run',
  ).action(calls(setExit, () => import('./apply.ts'), 'apply'))
}

export function addSubmit(program: Command, setExit: SetExit): void {
  const submit = withExamples(
    running(
      program
        .command('submit')
        .description('submit a command to run on a GPU server, print the task ID and return'),
    ).addOption(fileOption()),
    'headroom submit --vram 16Gi --name train -- python train.py',
  ).action(calls(setExit, () => import('./run-task.ts'), 'submitTask'))
  asShortcut(submit, 'headroom run --detach')
}

function fileOption(): Option {
  const says = 'file that describes the task, used instead of options (- for stdin)'
  return new Option('-f, --file <file>', says).conflicts(DESCRIBING)
}

function engineAt(text: string): SwapEngine {
  const [, kind, port] = /^([a-z]+)=(\d{1,5})$/.exec(text) ?? []
  const known = ENGINE_KINDS.find((each) => each === kind)
  if (known === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new InvalidArgumentError(
      `It must be one of ${ENGINE_KINDS.join(', ')} and a port, for example vllm=8000.`,
    )
  return { kind: known, port: Number(port) }
}

/** Adds how its VRAM leaves, and what brings it back. */
function serving(command: Command): Command {
  return command
    .option(
      '--port <name=port>',
      'TCP port of the task; append /http for HTTP; may be repeated. While the task is swapped out, ' +
        'only requests to these ports swap it in',
      repeatable,
      [],
    )
    .option(
      '--idle-swap-out <time>',
      'idle time after which the task may be swapped out, for example 10s; without a unit: seconds',
      idleSeconds,
    )
    .option(
      '--keep-warm',
      'swap the task out only if the other candidates of its class do not free enough VRAM',
    )
    .addOption(
      new Option(
        '--swap-method <method>',
        'how VRAM is swapped out: copied by the driver, moved by the task itself (hooks), or never',
      ).choices(REQUESTED_SWAP_METHODS.filter((method) => method !== 'engine')),
    )
    .addOption(
      new Option(
        '--engine <kind=port>',
        'the task is an inference server that Headroom puts to sleep and wakes up: vllm=8000 or sglang=8000',
      )
        .argParser(engineAt)
        .conflicts('swapMethod'),
    )
    .option('--wake-on-request', 'swap the task in only when a request arrives at one of its ports')
    .option('--no-wake-on-request', 'do not swap the task in when a request arrives')
}

/** Adds what a command on a GPU server can be given. */
function running(command: Command): Command {
  return serving(demanding(command))
    .option(
      '--image <reference>',
      'container image in which the command runs; requires a GPU server with a container engine',
    )
    .option(
      '--workdir <folder>',
      'folder on this machine to upload, except for the files excluded by its .headroomignore; the ' +
        'command starts in this folder',
    )
    .option(
      '--cwd <path>',
      'folder on the GPU server in which the command starts; may be relative to the current folder',
    )
    .option(
      '--mount <name>',
      'name of a data folder of the GPU server, mounted at /mnt/NAME in a container; may be repeated',
      repeatable,
      [],
    )
    .option(
      '--memory <size>',
      'host memory limit, for example 16Gi; a process that exceeds it is killed',
      mib(MIN_MEMORY_MIB, MAX_HOST_MIB),
    )
    .option('--cpus <n>', 'CPU limit', whole(1, MAX_CPUS))
    .option('--pids-limit <n>', 'maximum number of processes and threads', whole(MIN_PIDS, MAX_PIDS))
    .option(
      '--vram-limit <size>',
      'VRAM limit for each GPU; a task that uses more is killed',
      mib(1, MAX_VRAM_MIB),
    )
    .option(
      '--env <name=value>',
      'environment variable of the task; NAME alone copies its value from the local environment; may be ' +
        'repeated',
      repeatable,
      [],
    )
    .option('--env-file <file>', 'file with one NAME=VALUE per line; may be repeated', repeatable, [])
    .option(
      '--secret <variable=secret>',
      'environment variable with the value of one of your secrets (headroom secret set); VARIABLE alone ' +
        'uses the secret of the same name; may be repeated',
      repeatable,
      [],
    )
    .option(
      '--max-runtime <time>',
      'maximum runtime, for example 2h, after which the task is stopped; without a unit: seconds',
      runtimeSeconds,
    )
    .option(
      '--stop-grace <duration>',
      'time between SIGTERM and SIGKILL when the task is stopped (default: the cluster setting)',
      stopGraceSeconds,
    )
    .addOption(
      new Option('--on-node-loss <what>', 'what to do with the task when its server is lost').choices([
        'wait',
        'fail',
        'requeue',
      ]),
    )
    .option(
      '--max-requeues <n>',
      'maximum number of requeues after attempts that ended within 10 minutes; none: no limit',
      requeues,
    )
    .option(
      '--dry-run',
      'show where the task would be placed now and which tasks would be swapped out; runs nothing',
    )
    .argument('[command...]', 'command to run, after --; it is not interpreted by a shell')
}

export function addLease(program: Command, setExit: SetExit): void {
  withExamples(
    demanding(
      program
        .command('lease')
        .description('reserve a place on a GPU while a local command runs, or until Ctrl-C'),
    )
      .option('--idle', 'start idle: the lease may be swapped out')
      .argument(
        '[command...]',
        'local command to run, after --; HEADROOM_TASK_ID, HEADROOM_NODE and HEADROOM_GPUS are set in ' +
          'its environment',
      ),
    'headroom lease --vram 8Gi',
    'headroom lease --vram 8Gi -- ./notebook.sh',
  ).action(calls(setExit, () => import('./hold-lease.ts'), 'holdLease'))
}

/** Adds the options for GPU demand that both commands have. */
function demanding(command: Command): Command {
  return withServer(command)
    .option(
      '--vram <size>',
      'VRAM on each GPU: 8Gi, 8192Mi, 8G; required unless --exclusive (REQUIRED_VRAM)',
      vram,
    )
    .option('--gpus <n>', 'number of GPUs, all on one node; 1 by default (GPU_COUNT)', whole(1, MAX_GPUS))
    .option('--noswap', 'keep the task in VRAM: no swap-out and no overcommit (HEADROOM_SWAP_FROM_VRAM=0)')
    .option('--swap', 'allow swap-out while idle (the default, HEADROOM_SWAP_FROM_VRAM=1)')
    .option('--priority <p>', 'P0 (highest) to P4; P2 by default (PRIO)', priority)
    .option(
      '--group <group>',
      'group in which the task may run; may be repeated (HEADROOM_GROUPS)',
      repeatable,
      [],
    )
    .option('--name <name>', 'name of the task')
    .option('--label <name=value>', 'a label; may be repeated', repeatable, [])
    .option('--exclusive', 'give the task exclusive use of its GPUs (GPU_MODE=exclusive)')
}
