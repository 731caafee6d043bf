/** The `sim` commands: their options. What they do is loaded when one is called. */
import { Option } from 'commander'
import type { Command } from 'commander'
import { addRecordingCommands } from './sim/recording-commands.ts'
import { addScenarioCommands } from './sim/scenario-commands.ts'
import { withExamples } from './command-shape.ts'
import { decimal, integers, MAX_SEED, mib, time, timeWithin, whole } from './option-values.ts'
import { fieldValues, objectives, sweptAxes } from './sweep/option-values.ts'
import type { CounterfactualOptions } from './sim/sim-counterfactual.ts'
import type { SimCheckOptions } from './sim/sim-check.ts'
import type { SimCompareOptions } from './sim/sim-compare.ts'
import type { SimFuzzOptions } from './sim/sim-fuzz.ts'
import type { SimReplayOptions } from './sim/sim-replay.ts'
import type { SimServeOptions } from './sim/sim-serve.ts'
import type { SimRunOptions } from './sim/sim-run.ts'
import type { SimSweepOptions } from './sim/sim-sweep.ts'
import type { SimWorkerOptions } from './sim/sim-worker.ts'

const MAX_PERCENT = 1000
const MAX_JOBS = 1024
const MAX_FUZZ_SEEDS = 10_000_000
const MAX_NODES = 20_000
/** More than a scenario allows: the oracles of gang scheduling put a whole cluster into one node. */
const MAX_GPUS_PER_NODE = 8192
const MAX_GPUS = 1024
const MAX_VRAM_MIB = 16_777_216
const MAX_RESERVE_MIB = 1_048_576
const MAX_IDLE_SECONDS = 86_400
const MAX_TIME_SCALE = 1_000_000
const MAX_DECISION = 1_000_000_000
const MAX_SPEED = 1_000
/** As in controller/domain/config.ts and simulator/fleet/swap-profiles.ts; a test holds them equal. */
export const STRATEGIES = ['best_fit', 'spread', 'fifo']
export const SWAP_PROFILE_CHOICES = [
  'stock-driver',
  'pinned-gen3',
  'pinned-gen4',
  'pinned-gen5',
  'h100-driver-580',
  'cli-exec',
]

export function addSimCommands(program: Command, setExit: (code: number) => void): void {
  const sim = program
    .command('sim')
    .description('the production controller in virtual time, on a modelled fleet')
  addRun(sim, setExit)
  addSweep(sim, setExit)
  addWorker(sim, setExit)
  addCompare(sim, setExit)
  addReplay(sim, setExit)
  addCheck(sim, setExit)
  addFuzz(sim, setExit)
  addServe(sim, setExit)
  addCounterfactual(sim, setExit)
  addScenarioCommands(sim, setExit)
  addRecordingCommands(sim, setExit)
}

function addRun(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('run')
    .description('one run of a scenario')
    .argument('<file>', 'a scenario')
    .option('--seed <n>', "in place of the scenario's", whole(0, MAX_SEED))
    .option('--until <time>', 'no arrival after (36h)', time)
    .option('--overcommit <percent>', 'the default VRAM overcommit', whole(0, MAX_PERCENT))
    .option('--set <field=value>', 'another value for a field of the scenario; may be repeated', fieldValues)
    .option('--wire', 'carry every message through the codec')
    .option('--enact-heartbeats', 'send also the heartbeats that change nothing')
    .option('--out <folder>', 'result.json, timing.json, tasks.csv, series.csv, journal.jsonl')
    .option('--json', 'the result as JSON on stdout')
    .action(async (file: string, options: SimRunOptions) => {
      const { simRun } = await import('./sim/sim-run.ts')
      setExit(await simRun(file, options))
    })
}

function addSweep(sim: Command, setExit: (code: number) => void): void {
  const sweep = sim
    .command('sweep')
    .description(
      'the same scenario at several overcommit percentages, or values of any other field, and which percentage that speaks for',
    )
    .argument('<file>', 'a scenario')
    .option(
      '--overcommit <a..b:step>',
      "the percentages, or some of them: 0,25,50; else the scenario's sweep",
      integers(0, MAX_PERCENT),
    )
    .option('--seeds <a..b>', "the seeds of each percentage; else the scenario's", integers(0, MAX_SEED))
    .option(
      '--set <field=value,…>',
      'another field and the values tried; several times for several fields',
      sweptAxes,
    )
    .option(
      '--objective <figure<=max>',
      'what has to hold in 95 % of the seeds; may be repeated (else starvation.total<=20)',
      objectives,
    )
    .option('--jobs <n>', 'runs at a time; else one for each core', whole(1, MAX_JOBS))
    .option(
      '--out <folder>',
      'report.html, result.json, runs.csv, summary.csv, timing.json and each run; what is done there is not run again',
    )
    .option(
      '--workers <url>',
      'a NATS broker with JetStream: the runs are made by every `headroom sim worker` there, not here',
    )
    .addOption(
      new Option(
        '--redeliver <time>',
        'a worker that is silent for so long is given up, and its run given to another',
      )
        .argParser(timeWithin(1_000, 3_600_000))
        .default(30_000, '30s'),
    )
    .option('--no-journal', 'keep no journal.jsonl of each run')
    .option('--json', 'every run, the summary and the advice as JSON on stdout')
  withExamples(
    sweep,
    'headroom sim sweep scenarios/two-week-serving.scenario.yaml --overcommit 0..100:20 --seeds 1..5',
    "headroom sim sweep plan.scenario.yaml --overcommit 0..200:20 --seeds 1..10 --objective 'queue_wait.p95<=10m' --out plan",
    'headroom sim sweep plan.scenario.yaml --overcommit 0..200:20 --seeds 1..50 --workers nats://broker:4222 --out plan',
    'headroom sim sweep plan.scenario.yaml --overcommit 40 --set config.idle_swap_out_seconds=60,300 --set fleet.0.count=2..4',
  ).action(async (file: string, options: SimSweepOptions) => {
    const { simSweep } = await import('./sim/sim-sweep.ts')
    setExit(await simSweep(file, options))
  })
}

function addWorker(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('worker')
    .description('makes runs for `sim sweep --workers` until it is stopped; it may be killed at any time')
    .option('--nats <url>', 'the broker; else CONTROLLER_NATS_URL')
    .option('--jobs <n>', 'runs at a time; else one for each core', whole(1, MAX_JOBS))
    .action(async (options: SimWorkerOptions) => {
      const { simWorker } = await import('./sim/sim-worker.ts')
      setExit(await simWorker(options))
    })
}

function addCompare(sim: Command, setExit: (code: number) => void): void {
  const compare = sim
    .command('compare')
    .description(
      'in what two runs or two sweeps differ, seed by seed; ends with 0 when in nothing, with 6 otherwise',
    )
    .argument('<a>', 'a folder of `sim run --out` or `sim sweep --out`, or what `--json` printed')
    .argument('<b>', 'another one')
    .option('--json', 'as JSON on stdout')
  withExamples(compare, 'headroom sim compare before after').action(
    async (a: string, b: string, options: SimCompareOptions) => {
      const { simCompare } = await import('./sim/sim-compare.ts')
      setExit(simCompare(a, b, options))
    },
  )
}

function addReplay(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('replay')
    .description('a trace on a fleet given here')
    .argument('<trace>', 'a trace (.trace.jsonl, gzip allowed)')
    .option('--nodes <n>', 'nodes, all alike', whole(1, MAX_NODES))
    .option('--gpus-per-node <n>', 'GPUs of each', whole(1, MAX_GPUS_PER_NODE))
    .option('--vram-mib <mib>', 'VRAM of each GPU', mib(1, MAX_VRAM_MIB))
    .option('--nodes-file <file>', 'an openb list of nodes instead')
    .option('--vram-map <model=mib,…>', 'VRAM of GPU models in that list')
    .option('--overcommit <percent>', 'VRAM overcommit', whole(0, MAX_PERCENT), 0)
    .addOption(new Option('--strategy <name>', 'placement strategy').choices(STRATEGIES).default('best_fit'))
    .addOption(
      new Option('--swap <profile>', 'how fast GPUs swap')
        .choices(SWAP_PROFILE_CHOICES)
        .default('stock-driver'),
    )
    .option('--safety-reserve-mib <mib>', 'what stays free on each GPU', mib(0, MAX_RESERVE_MIB))
    .option(
      '--idle-swap-out <seconds>',
      'idle for so long, a task may be swapped out',
      whole(1, MAX_IDLE_SECONDS),
    )
    .option('--seed <n>', 'of all random numbers', whole(0, MAX_SEED), 1)
    .option('--time-scale <x>', 'arrivals lie this many times as far apart', decimal(0, MAX_TIME_SCALE), 1)
    .option('--sample <p>', 'take each task with this probability', decimal(0, 1), 1)
    .option('--max-gpus <n>', 'leave out tasks of more GPUs', whole(1, MAX_GPUS))
    .option('--until <time>', 'no arrival after (36h)', time)
    .option('--wire', 'carry every message through the codec')
    .option('--out <folder>', 'result.json, timing.json, tasks.csv, series.csv, journal.jsonl')
    .option('--json', 'the result as JSON on stdout')
    .action(async (file: string, options: SimReplayOptions) => {
      const { simReplay } = await import('./sim/sim-replay.ts')
      setExit(await simReplay(file, options))
    })
}

function addCheck(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('check')
    .description('run scenarios with their assertions, and hold their digests against the recorded ones')
    .argument(
      '[files...]',
      'scenarios; else every scenarios/**/*.scenario.yaml that asserts something or has a recorded digest',
    )
    .option('--update', 'record the digests that came out, and show what is different from before')
    .option('--jobs <n>', 'scenarios at a time', whole(1, MAX_JOBS), 2)
    .option('--json', 'as JSON on stdout')
    .action(async (files: string[], options: SimCheckOptions) => {
      const { simCheck } = await import('./sim/sim-check.ts')
      setExit(await simCheck(files, options))
    })
}

function addFuzz(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('fuzz')
    .description(
      'draw scenarios with faults from seeds and judge each; of the first that fails a smaller one is written',
    )
    .argument('[file]', 'a scenario to judge instead: how a failure is repeated')
    .option('--seeds <n>', 'how many seeds', whole(1, MAX_FUZZ_SEEDS), 1000)
    .option('--from <seed>', 'the first of them', whole(0, MAX_SEED - MAX_FUZZ_SEEDS), 1)
    .option(
      '--drawing <name>',
      'only seeds that draw this feature or kind of fault, such as noswap or store_set_back',
    )
    .option('--jobs <n>', 'worker processes; else one for each core', whole(1, MAX_JOBS))
    .option('--out <folder>', 'where the scenario of a failure is written', '.')
    .option(
      '--coverage',
      'how often each path of the rules was taken; from 1,000 seeds on, a usual one that never was is a failure',
    )
    .option('--json', 'as JSON on stdout')
    .action(async (file: string | undefined, options: SimFuzzOptions) => {
      const { simFuzz } = await import('./sim/sim-fuzz.ts')
      setExit(await simFuzz(file, options))
    })
}

function addCounterfactual(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('counterfactual')
    .description(
      'the run of a scenario against the same run in which one swap decision takes another victim; without options, its swap decisions',
    )
    .argument('<file>', 'a scenario')
    .option('--decision <n>', 'number of the decision', whole(1, MAX_DECISION))
    .option('--victim <task>', 'who leaves instead')
    .option('--seed <n>', "in place of the scenario's", whole(0, MAX_SEED))
    .option('--json', 'as JSON on stdout')
    .action(async (file: string, options: CounterfactualOptions) => {
      const { simCounterfactual } = await import('./sim/sim-counterfactual.ts')
      setExit(await simCounterfactual(file, options))
    })
}

function addServe(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('serve')
    .description("the scenario's servers, simulated, for a controller that is reached over NATS")
    .argument('<file>', 'a scenario')
    .option('--nats <url>', 'the broker; else CONTROLLER_NATS_URL')
    .option('--speed <factor>', 'tasks and copies so many times as quick', decimal(0, MAX_SPEED), 1)
    .option(
      '--task-time <time>',
      'how long a task is busy whose command does not say (headroom work busy=10s idle=1m); else until stopped',
      time,
    )
    .option('--no-faults', 'serve the servers of a scenario with faults, without them')
    .action(async (file: string, options: SimServeOptions) => {
      const { simServe } = await import('./sim/sim-serve.ts')
      setExit(await simServe(file, options))
    })
}
