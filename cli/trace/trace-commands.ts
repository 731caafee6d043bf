/** `headroom trace import` and `headroom trace inspect`. */
import { dirname } from 'node:path'
import { grouped } from '../../protocol/grouped-digits.ts'
import type { ActivityModelName } from '../../simulator/trace/activity.ts'
import { type ImportedTrace, importTrace } from '../../simulator/trace/import/import-trace.ts'
import {
  COMMON_REASONS,
  type FormatOption,
  type Importer,
  type ImportOptions,
  type TimeUnit,
} from '../../simulator/trace/import/importer.ts'
import { IMPORTERS, importerOf } from '../../simulator/trace/formats/importers.ts'
import { formatSummary, inspectTrace } from '../../simulator/trace/inspect.ts'
import type { TraceHeader } from '../../simulator/trace/trace-format.ts'
import { openTrace } from '../../simulator/trace/trace-file-reader.ts'
import { writeTrace, type WrittenTrace } from '../../simulator/trace/trace-file-writer.ts'
import { parseColumns, parsePriorityMap, parseVramMap } from '../../simulator/trace/import/vram-map.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { cannotBeWritten, checkPlace } from '../../services/output-file.ts'
import { withProgress } from '../output/progress.ts'
import { visible, visibleLines } from '../output/terminal-text.ts'

export interface TraceImportOptions {
  readonly output: string
  readonly json?: boolean
  readonly vramMap?: string
  readonly vramMib?: number
  readonly reserveMib?: number
  readonly exclusive?: boolean
  readonly shared?: boolean
  readonly activityModel?: ActivityModelName
  readonly seed?: number
  readonly timeScale?: number
  readonly from?: number
  readonly to?: number
  readonly sample?: number
  readonly maxGpus?: number
  readonly priorityMap?: string
  readonly name?: string
  readonly licence?: string
  readonly nodes?: string
  readonly columns?: string
  readonly delimiter?: string
  readonly timeUnit?: TimeUnit
  readonly procsPerGpu?: number
  readonly servers?: number
  readonly serverSkew?: number
  readonly serverLife?: number
  readonly prefillTokensPerS?: number
  readonly decodeTokensPerS?: number
  readonly busyAbove?: number
  readonly vramAboveMib?: number
  readonly gap?: number
  readonly interval?: number
}

/** Names of the options on the command line, by their name in importers. */
const FORMAT_OPTIONS: Readonly<Record<FormatOption, string>> = {
  nodesFile: '--nodes',
  columns: '--columns',
  delimiter: '--delimiter',
  timeUnit: '--time-unit',
  processorsPerGpu: '--procs-per-gpu',
  servers: '--servers',
  serverSkew: '--server-skew',
  serverLifeMs: '--server-life',
  prefillTokensPerS: '--prefill-tokens-per-s',
  decodeTokensPerS: '--decode-tokens-per-s',
  busyAbovePercent: '--busy-above',
  vramAboveMib: '--vram-above-mib',
  gapMs: '--gap',
  intervalMs: '--interval',
}

export async function traceImport(
  format: string,
  file: string,
  options: TraceImportOptions,
): Promise<number> {
  if (options.from !== undefined && options.to !== undefined && options.to <= options.from)
    throw new UsageError('--to must be after --from')
  const importer = importerOf(format)
  const given = importOptions(options)
  refuseOptionsOfOthers(importer, given)
  checkPlace(`--output ${options.output}`, options.output)
  const trace = await reading(importer, file, given)
  const written = await writing(trace, options.output).finally(() => trace.close())
  if (options.json === true) {
    const { rows, dropped, importer: how, source } = trace.header
    const facts = { file: options.output, ...written, rows, dropped, source, importer: how }
    process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`)
  } else process.stdout.write(reportOf(importer, trace.header, written.tasks, options.output))
  return EXIT_OK
}

function reading(importer: Importer, file: string, options: ImportOptions): Promise<ImportedTrace> {
  const startedAt = performance.now()
  return withProgress('reading', (onProgress) =>
    importTrace(importer, file, {
      ...options,
      onProgress: (fraction, rows) => {
        const perS = (1000 * rows) / (performance.now() - startedAt)
        onProgress(fraction, `${grouped(rows)} rows, ${grouped(Math.round(perS / 1000) * 1000)} per second`)
      },
    }),
  )
}

const TASKS_BETWEEN_NEWS = 4096

async function writing({ header, tasks, taskCount }: ImportedTrace, output: string): Promise<WrittenTrace> {
  try {
    return await withProgress('writing', (onProgress) =>
      writeTrace(
        output,
        header,
        counted(tasks, (count) => onProgress(count / taskCount, `${grouped(count)} tasks`)),
      ),
    )
  } catch (error) {
    return cannotBeWritten(`--output ${output}`, error)
  }
}

async function* counted<T>(items: AsyncIterable<T>, onCount: (count: number) => void): AsyncGenerator<T> {
  let count = 0
  for await (const item of items) {
    yield item
    count += 1
    if (count % TASKS_BETWEEN_NEWS === 0) onCount(count)
  }
}

/** An option without effect is a mistake of the user. */
function refuseOptionsOfOthers(importer: Importer, given: ImportOptions): void {
  for (const [option, flag] of Object.entries(FORMAT_OPTIONS) as Array<[FormatOption, string]>) {
    if (given[option] === undefined || importer.options.includes(option)) continue
    const takers = IMPORTERS.filter(({ options }) => options.includes(option)).map(({ format }) => format)
    throw new UsageError(`${flag} applies to ${takers.join(' and ')}, not to ${importer.format}`)
  }
}

export async function traceInspect(file: string, { json }: { readonly json?: boolean }): Promise<number> {
  const trace = await openTrace(file)
  const summary = await withProgress('reading', (onProgress) =>
    inspectTrace(trace, (tasks) => onProgress(trace.readFraction(), `${grouped(tasks)} tasks`)),
  )
  process.stdout.write(
    json === true ? `${JSON.stringify(summary, null, 2)}\n` : visibleLines(formatSummary(summary)),
  )
  return EXIT_OK
}

/** Fields that were not given are left out, so that the importer's defaults apply. */
function importOptions(options: TraceImportOptions): ImportOptions {
  const {
    output,
    json: _json,
    nodes,
    vramMap,
    from,
    to,
    priorityMap,
    columns,
    procsPerGpu,
    serverLife,
    busyAbove,
    gap,
    interval,
    ...same
  } = options
  return {
    ...same,
    // The disk with room for the trace also has room for temporary files of the sort.
    spillFolder: dirname(output),
    ...defined({
      nodesFile: nodes,
      vramMap: vramMap === undefined ? undefined : parseVramMap(vramMap),
      fromMs: from,
      toMs: to,
      priorityMap: priorityMap === undefined ? undefined : parsePriorityMap(priorityMap),
      columns: columns === undefined ? undefined : parseColumns(columns),
      processorsPerGpu: procsPerGpu,
      serverLifeMs: serverLife,
      busyAbovePercent: busyAbove,
      gapMs: gap,
      intervalMs: interval,
    }),
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

const WHOLE_GPUS =
  'Tasks with unknown VRAM use whole GPUs. Use --vram-mib, --vram-map or --shared to let them share GPUs.'

/** Counts every dropped row. */
function reportOf(
  format: Importer,
  { rows, dropped, importer }: TraceHeader,
  kept: number,
  file: string,
): string {
  const droppedCount = Object.values(dropped).reduce((sum, count) => sum + count, 0)
  const { synthetic = [], adjusted = {}, ignored = {} } = importer ?? {}
  const lines = [
    `${file}: ${kept} tasks from ${rows} rows, ${droppedCount} dropped`,
    ...linesOf('dropped ', dropped, { ...COMMON_REASONS, ...format.dropped }),
    ...linesOf('adjusted', adjusted, format.adjusted),
    ...linesOf('ignored ', ignored, format.ignored),
    ...(synthetic.length === 0 ? [] : [`  generated  ${synthetic.join(', ')}`]),
    ...(synthetic.includes('gpu_mode') ? [`  ${WHOLE_GPUS}`] : []),
  ]
  return lines.map((line) => `${visible(line)}\n`).join('')
}

function linesOf(
  what: string,
  counts: Readonly<Record<string, number>>,
  words: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(counts).map(
    ([reason, count]) =>
      `  ${what} ${count} ${reason}${words[reason] === undefined ? '' : `: ${words[reason]}`}`,
  )
}
