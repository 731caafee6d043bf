/** The `trace` commands: their options. What they do is loaded when one is called. */
import { Argument, Option } from 'commander'
import type { Command } from 'commander'
import { decimal, MAX_SEED, mib, time, whole } from './option-values.ts'
import type { TraceImportOptions } from './trace-commands.ts'

const MAX_GPUS = 1024
/** 16 TiB. */
const MAX_VRAM_MIB = 16_777_216
const MAX_RESERVE_MIB = 1_048_576
const MAX_TIME_SCALE = 1_000_000
/** As in simulator/trace/importers.ts and simulator/fleet/activity.ts; a test holds them equal. */
export const TRACE_FORMATS = ['openb', 'tiresias']
export const ACTIVITY_MODELS = ['always-busy', 'serving', 'training']

export function addTraceCommands(program: Command, setExit: (code: number) => void): void {
  const trace = program.command('trace').description('import public cluster traces, and look at them')
  trace
    .command('import')
    .description('turn a foreign file into a trace; every row that is not kept is counted by reason')
    .addArgument(new Argument('<format>', 'what the file is').choices(TRACE_FORMATS))
    .argument('<file>', 'the foreign file; gzip is understood')
    .requiredOption('-o, --output <file>', 'where the trace goes (.trace.jsonl, or .trace.jsonl.gz to compress)')
    .option('--nodes <file>', "the cluster's list of nodes, for formats that have one")
    .option('--vram-map <model=mib,…>', 'VRAM of GPU models')
    .option('--vram-mib <mib>', 'VRAM of a task where the source gives no clue', mib(1, MAX_VRAM_MIB))
    .option('--reserve-mib <mib>', 'what stays free on each GPU', mib(0, MAX_RESERVE_MIB))
    .option('--exclusive', 'every task takes whole GPUs for itself')
    .addOption(new Option('--activity-model <model>', 'how much of their time tasks use the GPU').choices(ACTIVITY_MODELS))
    .option('--priority-map <word=P2,…>', "priority by the source's word for it")
    .option('--seed <n>', 'of all random numbers', whole(0, MAX_SEED))
    .option('--time-scale <x>', 'arrivals lie this many times as far apart', decimal(0, MAX_TIME_SCALE))
    .option('--from <time>', 'leave out what arrives before (36h)', time)
    .option('--to <time>', 'leave out what arrives then or later', time)
    .option('--sample <p>', 'take each task with this probability', decimal(0, 1))
    .option('--max-gpus <n>', 'leave out tasks of more GPUs', whole(1, MAX_GPUS))
    .option('--name <name>', 'of the trace')
    .option('--licence <spdx>', 'of the source')
    .option('--json', 'tell on stdout, as JSON')
    .action(async (format: string, file: string, options: TraceImportOptions) => {
      const { traceImport } = await import('./trace-commands.ts')
      setExit(await traceImport(format, file, options))
    })
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
