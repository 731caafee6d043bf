/** The `sim` commands: their options. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { PLACEMENT_STRATEGIES } from '../../controller/model/config.ts'
import { MAX_RESERVE_MIB, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { SWAP_PROFILE_NAMES } from '../../simulator/scenario/swap-profiles.ts'
import { calls, withExamples, type SetExit } from '../command/command-shape.ts'
import { MAX_SEED, decimal, integers, mib, time, timeWithin, whole } from '../command/option-values.ts'
import { fieldValues, objectives, sweptAxes } from './sweep-values.ts'

const MAX_PERCENT = 1000
const MAX_JOBS = 1024
const MAX_FUZZ_SEEDS = 10_000_000
const MAX_NODES = 20_000
/** More than a scenario allows: the oracles of gang scheduling put a whole cluster into one node. */
const MAX_GPUS_PER_NODE = 8192
const MAX_GPUS = 1024
const MAX_IDLE_SECONDS = 86_400
const MAX_TIME_SCALE = 1_000_000
const MAX_DECISION = 1_000_000_000
const MAX_SPEED = 1_000

export function addSimCommands(program: Command, setExit: (code: number) => void): void {
  const sim = program
    .command('sim')
    .description('run the production controller in virtual time, on a simulated fleet')
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
    .description('run a scenario')
    .argument('<file>', 'a scenario')
    .option('--seed <n>', 'seed (default: the seed of the scenario)', whole(0, MAX_SEED))
    .option('--until <time>', 'end of arrivals, for example 36h', time)
    .option('--overcommit <percent>', 'default VRAM overcommit', whole(0, MAX_PERCENT))
    .option('--set <field=value>', 'set a field of the scenario; may be repeated', fieldValues)
    .option('--wire', 'encode and decode every message')
    .option('--enact-heartbeats', 'also send heartbeats without changes')
    .option('--out <folder>', 'folder for result.json, timing.json, tasks.csv, series.csv, journal.jsonl')
    .option('--json', 'print the result as JSON')
    .action(calls(setExit, () => import('./sim-run.ts'), 'simRun'))
}

function addSweep(sim: Command, setExit: (code: number) => void): void {
  const sweep = sim
    .command('sweep')
    .description(
      'run a scenario with several overcommit percentages, or values of any other field, and recommend ' +
        'a percentage',
    )
    .argument('<file>', 'a scenario')
    .option(
      '--overcommit <a..b:step>',
      'overcommit percentages, as a range or a list (0,25,50; default: the sweep of the scenario)',
      integers(0, MAX_PERCENT),
    )
    .option(
      '--seeds <a..b>',
      'seeds for each percentage (default: the seeds of the scenario)',
      integers(0, MAX_SEED),
    )
    .option('--set <field=value,…>', 'values of another field to sweep; may be repeated', sweptAxes)
    .option(
      '--objective <figure<=max>',
      'objective that must hold in 95% of the seeds; may be repeated (default: starvation.total<=20)',
      objectives,
    )
    .option('--jobs <n>', 'concurrent runs (default: one per core)', whole(1, MAX_JOBS))
    .option(
      '--out <folder>',
      'folder for report.html, result.json, runs.csv, summary.csv, timing.json and each run; existing ' +
        'runs are not repeated',
    )
    .option(
      '--workers <url>',
      'NATS broker with JetStream; the `headroom sim worker` processes connected to it execute the runs',
    )
    .addOption(
      new Option(
        '--redeliver <time>',
        'time without contact after which the run of a worker is assigned to another worker',
      )
        .argParser(timeWithin(1_000, 3_600_000))
        .default(30_000, '30s'),
    )
    .option('--no-journal', 'do not keep the journal.jsonl of each run')
    .option('--json', 'print every run, the summary and the advice as JSON')
  withExamples(
    sweep,
    'headroom sim sweep scenarios/two-week-serving.scenario.yaml --overcommit 0..100:20 --seeds 1..5',
    'headroom sim sweep plan.scenario.yaml --overcommit 0..200:20 --seeds 1..10 --objective ' +
      "'queue_wait.p95<=10m' --out plan",
    'headroom sim sweep plan.scenario.yaml --overcommit 0..200:20 --seeds 1..50 --workers ' +
      'nats://broker:4222 --out plan',
    'headroom sim sweep plan.scenario.yaml --overcommit 40 --set config.idle_swap_out_seconds=60,300 ' +
      '--set fleet.0.count=2..4',
  ).action(calls(setExit, () => import('./sim-sweep.ts'), 'simSweep'))
}

function addWorker(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('worker')
    .description('execute runs of `sim sweep --workers` until stopped; safe to kill at any time')
    .option('--nats <url>', 'URL of the broker (default: CONTROLLER_NATS_URL)')
    .option('--jobs <n>', 'concurrent runs (default: one per core)', whole(1, MAX_JOBS))
    .action(calls(setExit, () => import('./sim-worker.ts'), 'simWorker'))
}

function addCompare(sim: Command, setExit: (code: number) => void): void {
  const compare = sim
    .command('compare')
    .description(
      'compare two runs or two sweeps seed by seed; exits with 0 if they are equal, otherwise with 6',
    )
    .argument('<a>', 'an output folder of `sim run` or `sim sweep`, or a file with the output of `--json`')
    .argument('<b>', 'the second run or sweep, in the same form')
    .option('--json', 'print JSON')
  withExamples(compare, 'headroom sim compare before after').action(
    calls(setExit, () => import('./sim-compare.ts'), 'simCompare'),
  )
}

function addReplay(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('replay')
    .description('run a trace on a fleet that the options specify')
    .argument('<trace>', 'a trace (.trace.jsonl; may be compressed with gzip)')
    .option('--nodes <n>', 'number of identical nodes', whole(1, MAX_NODES))
    .option('--gpus-per-node <n>', 'GPUs per node', whole(1, MAX_GPUS_PER_NODE))
    .option('--vram-mib <mib>', 'VRAM of each GPU', mib(1, MAX_VRAM_MIB))
    .option('--nodes-file <file>', 'node list in openb format, instead of --nodes')
    .option('--vram-map <model=mib,…>', 'VRAM of each GPU model in that list')
    .option('--overcommit <percent>', 'VRAM overcommit', whole(0, MAX_PERCENT), 0)
    .addOption(
      new Option('--strategy <name>', 'placement strategy').choices(PLACEMENT_STRATEGIES).default('best_fit'),
    )
    .addOption(
      new Option('--swap <profile>', 'swap speed of the GPUs')
        .choices(SWAP_PROFILE_NAMES)
        .default('stock-driver'),
    )
    .option('--safety-reserve-mib <mib>', 'safety reserve of each GPU', mib(0, MAX_RESERVE_MIB))
    .option(
      '--idle-swap-out <seconds>',
      'idle time after which a task may be swapped out',
      whole(1, MAX_IDLE_SECONDS),
    )
    .option('--seed <n>', 'seed of all random numbers', whole(0, MAX_SEED), 1)
    .option(
      '--time-scale <x>',
      'multiply the time between arrivals by this factor',
      decimal(0, MAX_TIME_SCALE),
      1,
    )
    .option('--sample <p>', 'include each task with this probability', decimal(0, 1), 1)
    .option('--max-gpus <n>', 'leave out tasks with more GPUs than this', whole(1, MAX_GPUS))
    .option('--until <time>', 'end of arrivals, for example 36h', time)
    .option('--wire', 'encode and decode every message')
    .option('--out <folder>', 'folder for result.json, timing.json, tasks.csv, series.csv, journal.jsonl')
    .option('--json', 'print the result as JSON')
    .action(calls(setExit, () => import('./sim-replay.ts'), 'simReplay'))
}

function addCheck(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('check')
    .description('run scenarios with their assertions, and compare their digests with the recorded ones')
    .argument(
      '[files...]',
      'scenarios (default: every scenarios/**/*.scenario.yaml with assertions or a recorded digest)',
    )
    .option('--update', 'record the new digests, and show the differences')
    .option('--jobs <n>', 'concurrent scenarios', whole(1, MAX_JOBS), 2)
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-check.ts'), 'simCheck'))
}

function addFuzz(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('fuzz')
    .description(
      'generate scenarios with faults from seeds and check each; writes a reduced scenario for the ' +
        'first failure',
    )
    .argument('[file]', 'check this scenario instead, to repeat a failure')
    .option('--seeds <n>', 'number of seeds', whole(1, MAX_FUZZ_SEEDS), 1000)
    .option('--from <seed>', 'first seed', whole(0, MAX_SEED - MAX_FUZZ_SEEDS), 1)
    .option(
      '--drawing <name>',
      'only seeds whose scenario has this feature or kind of fault, for example noswap or store_set_back',
    )
    .option('--jobs <n>', 'worker processes (default: one per core)', whole(1, MAX_JOBS))
    .option('--out <folder>', 'folder for the scenario of a failure', '.')
    .option(
      '--coverage',
      'print how often each path through the rules was taken; with 1,000 seeds or more, a common path that ' +
        'was never taken is a failure',
    )
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-fuzz.ts'), 'simFuzz'))
}

function addCounterfactual(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('counterfactual')
    .description(
      'compare the run of a scenario with one in which a swap decision chooses other victims; without ' +
        'options, list its swap decisions',
    )
    .argument('<file>', 'a scenario')
    .option('--decision <n>', 'number of the decision', whole(1, MAX_DECISION))
    .option('--victim <task>', 'task to swap out instead')
    .option('--seed <n>', 'seed (default: the seed of the scenario)', whole(0, MAX_SEED))
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-counterfactual.ts'), 'simCounterfactual'))
}

function addServe(sim: Command, setExit: (code: number) => void): void {
  sim
    .command('serve')
    .description('run the simulated servers of a scenario for a controller connected over NATS')
    .argument('<file>', 'a scenario')
    .option('--nats <url>', 'URL of the broker (default: CONTROLLER_NATS_URL)')
    .option('--speed <factor>', 'speed-up factor of tasks and copies', decimal(0, MAX_SPEED), 1)
    .option(
      '--task-time <time>',
      'busy time of tasks whose command does not specify it (headroom work busy=10s idle=1m; default: ' +
        'until stopped)',
      time,
    )
    .option('--no-faults', 'leave out the faults of the scenario')
    .action(calls(setExit, () => import('./sim-serve.ts'), 'simServe'))
}

function addRecordingCommands(sim: Command, setExit: (code: number) => void): void {
  const redecide = sim
    .command('redecide')
    .description(
      'replay the recorded inputs of a live controller, and report the first decision that differs',
    )
    .argument(
      '<recording>',
      'CONTROLLER_DATA_DIR, its recording/ folder, or the recording file to start with',
    )
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-redecide.ts'), 'simRedecide'))
  withExamples(redecide, 'headroom sim redecide ./data/recording')
  const record = sim
    .command('record')
    .description(
      'convert a time range of the live history to a scenario with the recorded fleet, configuration, ' +
        'tasks, operator actions and faults',
    )
    .option(
      '--data <folder>',
      'CONTROLLER_DATA_DIR of the controller, or a copy of its recording/ folder',
      './data',
    )
    .option(
      '--from <instant>',
      'start time in UTC (2026-05-04T08:00:00Z; default: when the first node ' + 'is up)',
    )
    .option('--to <instant>', 'end time (default: the end of the recording)')
    .option('--name <name>', 'name of the scenario', 'recorded')
    .option('--out <file>', 'scenario file to write (default: stdout)')
    .action(calls(setExit, () => import('./sim-record.ts'), 'simRecord'))
  withExamples(
    record,
    'headroom sim record --data /var/lib/headroom --from 2026-05-04T08:00:00Z --to 2026-05-04T09:00:00Z ' +
      '--out incident.scenario.json',
  )
}

function addScenarioCommands(sim: Command, setExit: SetExit): void {
  const validate = sim
    .command('validate')
    .description(
      'check scenario files without running them; reports each problem with its line, column and a ' +
        'suggested name',
    )
    .argument('[files...]', 'scenarios (default: all in scenarios/ and its subfolders)')
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-validate.ts'), 'simValidate'))
  withExamples(
    validate,
    'headroom sim validate mine.scenario.yaml',
    'headroom sim validate mine.scenario.yaml --json',
  )
  const schema = sim
    .command('schema')
    .description(
      'print the JSON Schema (2020-12) of scenario files, for editors and other programs; same as ' +
        'scenarios/scenario.schema.json',
    )
    .action(calls(setExit, () => import('./sim-validate.ts'), 'simSchema'))
  withExamples(schema, 'headroom sim schema > scenario.schema.json')
}
