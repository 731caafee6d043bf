/** The `trace` commands: their options. Their actions are loaded when called. */
import { Argument, InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import { MAX_RESERVE_MIB, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { nearestName } from '../../simulator/document/nearest-name.ts'
import { ACTIVITY_MODEL_NAMES } from '../../simulator/trace/activity.ts'
import { TIME_UNITS, TRACE_FORMATS } from '../../simulator/trace/import/importer.ts'
import { calls, withExamples } from '../command/command-shape.ts'
import { decimal, MAX_SEED, mib, time, timeWithin, whole } from '../command/option-values.ts'

const MAX_GPUS = 1024
const MAX_TIME_SCALE = 1_000_000
const MAX_PROCESSORS_PER_GPU = 10_000
const MAX_SERVERS = 10_000
const MAX_TOKENS_PER_S = 1_000_000_000
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

export function addTraceCommands(program: Command, setExit: (code: number) => void): void {
  const trace = program.command('trace').description('import public cluster traces, and inspect them')
  const command = trace
    .command('import')
    .description(
      'convert a file of another format to a trace; counts dropped rows by reason (docs/trace-format.md)',
    )
    .addArgument(new Argument('<format>', 'format of the file').choices(TRACE_FORMATS).argParser(knownFormat))
    .argument('<file>', 'the file to convert; may be compressed with gzip')
    .requiredOption(
      '-o, --output <file>',
      'the trace to write (.trace.jsonl, or .trace.jsonl.gz to compress)',
    )
    .addOption(
      new Option('--activity-model <model>', 'model of the GPU use of each task over time').choices(
        ACTIVITY_MODEL_NAMES,
      ),
    )
    .option('--seed <n>', 'seed of all random numbers', whole(0, MAX_SEED))
    .option(
      '--time-scale <x>',
      'multiply the time between arrivals by this factor',
      decimal(0, MAX_TIME_SCALE),
    )
    .option('--from <time>', 'leave out arrivals before this time, for example 36h', time)
    .option('--to <time>', 'leave out arrivals at or after this time', time)
    .option('--sample <p>', 'include each task with this probability', decimal(0, 1))
    .option('--max-gpus <n>', 'leave out tasks with more GPUs than this', whole(1, MAX_GPUS))
    .option('--vram-mib <mib>', 'VRAM of tasks whose VRAM is not in the source', mib(1, MAX_VRAM_MIB))
    .option('--vram-map <model=mib,…>', 'VRAM of each GPU model')
    .option('--reserve-mib <mib>', 'safety reserve of each GPU', mib(0, MAX_RESERVE_MIB))
    .addOption(new Option('--exclusive', 'every task uses whole GPUs').conflicts('shared'))
    .option('--shared', 'every task shares its GPUs, even if its VRAM is not in the source')
    .option('--priority-map <word=P2,…>', 'priority for each QoS class, partition or queue of the source')
    .option('--name <name>', 'name of the trace')
    .option('--licence <spdx>', 'licence of the source')
  addFormatOptions(command)
  command
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./trace-commands.ts'), 'traceImport'))
  withExamples(
    command,
    'headroom trace import slurm sacct.txt -o cluster.trace.jsonl.gz --vram-map a100=40960 ' +
      '--activity-model serving',
    'headroom trace import csv jobs.csv -o jobs.trace.jsonl --columns ' +
      'id=JobID,at=Submit,duration=Runtime,gpus=GPUs --max-gpus 8',
    'headroom trace import headroom events.jsonl -o own.trace.jsonl  # from headroom events -o jsonl ' +
      '--after 0',
  )
  trace
    .command('inspect')
    .description('show the contents of a trace')
    .argument('<file>', 'a trace')
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./trace-commands.ts'), 'traceInspect'))
}

/** Options that only some formats accept (`options` of an importer). */
function addFormatOptions(command: Command): void {
  command
    .option('--nodes <file>', 'openb: node list of the cluster')
    .option('--columns <field=column,…>', 'csv: column to read each field from')
    .option('--delimiter <char>', 'csv: separator of cells, one character or tab', delimiter)
    .addOption(new Option('--time-unit <unit>', 'csv: unit of times without a unit').choices(TIME_UNITS))
    .option('--procs-per-gpu <n>', 'swf: processors per GPU', whole(1, MAX_PROCESSORS_PER_GPU))
    .option('--servers <n>', 'azure-llm: number of servers that share the requests', whole(1, MAX_SERVERS))
    .option(
      '--server-skew <s>',
      'azure-llm: the share of the k-th server is proportional to k^-s',
      decimal(0, 10),
    )
    .option('--server-life <time>', 'azure-llm: lifetime of a server', timeWithin(MINUTE_MS, 365 * DAY_MS))
    .option(
      '--prefill-tokens-per-s <n>',
      'azure-llm: input tokens per second of a server',
      whole(1, MAX_TOKENS_PER_S),
    )
    .option(
      '--decode-tokens-per-s <n>',
      'azure-llm: output tokens per second of a server',
      whole(1, MAX_TOKENS_PER_S),
    )
    .option(
      '--busy-above <percent>',
      'nvidia-smi, dcgm: utilization above which a sample counts as GPU work',
      whole(0, 99),
    )
    .option(
      '--vram-above-mib <mib>',
      'nvidia-smi, dcgm: VRAM use above which a task counts as present',
      mib(0, MAX_VRAM_MIB),
    )
    .option('--gap <time>', 'nvidia-smi, dcgm: time without samples after which a task counts as ended', time)
    .option('--interval <time>', 'dcgm: interval between samples of a GPU', time)
}

function knownFormat(format: string): string {
  if (TRACE_FORMATS.some((known) => known === format)) return format
  const nearest = nearestName(format, TRACE_FORMATS)
  throw new InvalidArgumentError(
    `${nearest === null ? '' : `Did you mean ${nearest}? `}Use one of ${TRACE_FORMATS.join(', ')}.`,
  )
}

function delimiter(text: string): string {
  if (text === 'tab' || text === '\\t') return '\t'
  if (text.length === 1 && text !== '"' && text !== '\n') return text
  throw new InvalidArgumentError('It must be one character, or tab.')
}
