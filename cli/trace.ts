/** The `trace` commands: their options. What they do is loaded when one is called. */
import { Argument, InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import { nearestName } from '../simulator/scenario/nearest-name.ts'
import { withExamples } from './command-shape.ts'
import { decimal, MAX_SEED, mib, time, timeWithin, whole } from './option-values.ts'
import type { TraceImportOptions } from './trace-commands.ts'

const MAX_GPUS = 1024
/** 16 TiB. */
const MAX_VRAM_MIB = 16_777_216
const MAX_RESERVE_MIB = 1_048_576
const MAX_TIME_SCALE = 1_000_000
const MAX_PROCESSORS_PER_GPU = 10_000
const MAX_SERVERS = 10_000
const MAX_TOKENS_PER_S = 1_000_000_000
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/**
 * As in simulator/trace/importers.ts, importer.ts and simulator/fleet/activity.ts; a test holds them equal.
 */
export const TRACE_FORMATS = [
  'headroom', 'csv', 'slurm', 'openb', 'philly', 'helios', 'swf', 'tiresias', 'gavel', 'azure-llm', 'nvidia-smi', 'dcgm',
] // prettier-ignore
export const TIME_UNITS = ['s', 'ms', 'us', 'ns']
export const ACTIVITY_MODELS = ['always-busy', 'serving', 'training']

export function addTraceCommands(program: Command, setExit: (code: number) => void): void {
  const trace = program.command('trace').description('import public cluster traces, and look at them')
  const command = trace
    .command('import')
    .description(
      'turn a foreign file into a trace; every row that is not kept is counted by reason (docs/trace-format.md)',
    )
    .addArgument(new Argument('<format>', 'what the file is').choices(TRACE_FORMATS).argParser(knownFormat))
    .argument('<file>', 'the foreign file; gzip is understood')
    .requiredOption(
      '-o, --output <file>',
      'where the trace goes (.trace.jsonl, or .trace.jsonl.gz to compress)',
    )
    .addOption(
      new Option('--activity-model <model>', 'how much of their time tasks use the GPU').choices(
        ACTIVITY_MODELS,
      ),
    )
    .option('--seed <n>', 'of all random numbers', whole(0, MAX_SEED))
    .option('--time-scale <x>', 'arrivals lie this many times as far apart', decimal(0, MAX_TIME_SCALE))
    .option('--from <time>', 'leave out what arrives before (36h)', time)
    .option('--to <time>', 'leave out what arrives then or later', time)
    .option('--sample <p>', 'take each task with this probability', decimal(0, 1))
    .option('--max-gpus <n>', 'leave out tasks of more GPUs', whole(1, MAX_GPUS))
    .option('--vram-mib <mib>', 'VRAM of a task where the source gives no clue', mib(1, MAX_VRAM_MIB))
    .option('--vram-map <model=mib,…>', 'VRAM of GPU models')
    .option('--reserve-mib <mib>', 'what stays free on each GPU', mib(0, MAX_RESERVE_MIB))
    .addOption(new Option('--exclusive', 'every task takes whole GPUs for itself').conflicts('shared'))
    .option('--shared', 'every task shares its GPUs, also where the source knows no VRAM')
    .option('--priority-map <word=P2,…>', "priority by the source's word for it")
    .option('--name <name>', 'of the trace')
    .option('--licence <spdx>', 'of the source')
  addFormatOptions(command)
  command
    .option('--json', 'tell as JSON')
    .action(async (format: string, file: string, options: TraceImportOptions) => {
      const { traceImport } = await import('./trace-commands.ts')
      setExit(await traceImport(format, file, options))
    })
  withExamples(
    command,
    'headroom trace import slurm sacct.txt -o cluster.trace.jsonl.gz --vram-map a100=40960 --activity-model serving',
    'headroom trace import csv jobs.csv -o jobs.trace.jsonl --columns id=JobID,at=Submit,duration=Runtime,gpus=GPUs --max-gpus 8',
    'headroom trace import headroom events.jsonl -o own.trace.jsonl  # what headroom events -o jsonl --after 0 wrote',
  )
  trace
    .command('inspect')
    .description('what is in a trace')
    .argument('<file>', 'a trace')
    .option('--json', 'as JSON')
    .action(async (file: string, options: { readonly json?: boolean }) => {
      const { traceInspect } = await import('./trace-commands.ts')
      setExit(await traceInspect(file, options))
    })
}

/** What some formats take, and others refuse (`options` of an importer). */
function addFormatOptions(command: Command): void {
  command
    .option('--nodes <file>', "openb: the cluster's list of nodes")
    .option('--columns <field=column,…>', 'csv: which column holds which field')
    .option('--delimiter <char>', 'csv: between cells, one character or tab', delimiter)
    .addOption(new Option('--time-unit <unit>', 'csv: what bare numbers count').choices(TIME_UNITS))
    .option('--procs-per-gpu <n>', 'swf: so many processors are a GPU', whole(1, MAX_PROCESSORS_PER_GPU))
    .option('--servers <n>', 'azure-llm: how many share the requests', whole(1, MAX_SERVERS))
    .option('--server-skew <s>', 'azure-llm: the k-th server gets k^-s as many', decimal(0, 10))
    .option(
      '--server-life <time>',
      'azure-llm: a server is replaced after this',
      timeWithin(MINUTE_MS, 365 * DAY_MS),
    )
    .option(
      '--prefill-tokens-per-s <n>',
      'azure-llm: context that a server reads',
      whole(1, MAX_TOKENS_PER_S),
    )
    .option('--decode-tokens-per-s <n>', 'azure-llm: output that it writes', whole(1, MAX_TOKENS_PER_S))
    .option('--busy-above <percent>', 'nvidia-smi, dcgm: a sample above this is GPU work', whole(0, 99))
    .option(
      '--vram-above-mib <mib>',
      'nvidia-smi, dcgm: with more in use a task is there',
      mib(0, MAX_VRAM_MIB),
    )
    .option('--gap <time>', 'nvidia-smi, dcgm: without samples for so long a task is over', time)
    .option('--interval <time>', 'dcgm: between two samples of a GPU', time)
}

function knownFormat(format: string): string {
  if (TRACE_FORMATS.includes(format)) return format
  const nearest = nearestName(format, TRACE_FORMATS)
  throw new InvalidArgumentError(
    `${nearest === null ? '' : `Did you mean ${nearest}? `}There are ${TRACE_FORMATS.join(', ')}.`,
  )
}

function delimiter(text: string): string {
  if (text === 'tab' || text === '\\t') return '\t'
  if (text.length === 1 && text !== '"' && text !== '\n') return text
  throw new InvalidArgumentError('It must be one character, or tab.')
}
