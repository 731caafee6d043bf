/** `headroom trace import` and `headroom trace inspect`. */
import type { ActivityModelName } from '../simulator/fleet/activity.ts'
import { importTrace } from '../simulator/trace/import-trace.ts'
import type { ImportOptions } from '../simulator/trace/importer.ts'
import { importerOf } from '../simulator/trace/importers.ts'
import { formatSummary, inspectTrace } from '../simulator/trace/inspect.ts'
import type { TraceHeader } from '../simulator/trace/trace-format.ts'
import { openTrace } from '../simulator/trace/trace-file-reader.ts'
import { writeTrace } from '../simulator/trace/trace-file-writer.ts'
import { parsePriorityMap, parseVramMap } from '../simulator/trace/vram-map.ts'
import { EXIT_OK, UsageError } from './exit-codes.ts'

export interface TraceImportOptions {
  readonly output: string
  readonly json?: boolean
  readonly nodes?: string
  readonly vramMap?: string
  readonly vramMib?: number
  readonly reserveMib?: number
  readonly exclusive?: boolean
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
}

export async function traceImport(format: string, file: string, options: TraceImportOptions): Promise<number> {
  if (options.from !== undefined && options.to !== undefined && options.to <= options.from)
    throw new UsageError('--to must be after --from')
  const { header, tasks, close } = await importTrace(importerOf(format), file, importOptions(options))
  const written = await writeTrace(options.output, header, tasks)
    .catch((error: unknown) => {
      throw isFileFault(error) ? new UsageError(`--output ${options.output}: cannot be written: ${error.message}`, { cause: error }) : error
    })
    .finally(close)
  if (options.json === true) {
    const { rows, dropped, importer, source } = header
    const told = { file: options.output, ...written, rows, dropped, source, importer }
    process.stdout.write(`${JSON.stringify(told, null, 2)}\n`)
  } else process.stderr.write(reportOf(header, written.tasks, options.output))
  return EXIT_OK
}

export async function traceInspect(file: string, { json }: { readonly json?: boolean }): Promise<number> {
  const summary = await inspectTrace(await openTrace(file))
  process.stdout.write(json === true ? `${JSON.stringify(summary, null, 2)}\n` : formatSummary(summary))
  return EXIT_OK
}

/** Fields that were not given are left out, so that the importer's defaults hold. */
function importOptions({
  output: _output,
  json: _json,
  nodes,
  vramMap,
  from,
  to,
  priorityMap,
  ...same
}: TraceImportOptions): ImportOptions {
  return {
    ...same,
    ...(nodes === undefined ? {} : { nodesFile: nodes }),
    ...(vramMap === undefined ? {} : { vramMap: parseVramMap(vramMap) }),
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
    ...(priorityMap === undefined ? {} : { priorityMap: parsePriorityMap(priorityMap) }),
  }
}

/** No row disappears without being counted here. */
function reportOf({ rows, dropped, importer }: TraceHeader, kept: number, file: string): string {
  const droppedCount = Object.values(dropped).reduce((sum, count) => sum + count, 0)
  const lines = [`${file}: ${kept} tasks kept of ${rows} rows, ${droppedCount} dropped`]
  for (const [reason, count] of Object.entries(dropped)) lines.push(`  dropped  ${count} ${reason}`)
  for (const [correction, count] of Object.entries(importer?.adjusted ?? {})) lines.push(`  adjusted ${count} ${correction}`)
  for (const [constraint, count] of Object.entries(importer?.ignored ?? {})) lines.push(`  ignored  ${count} ${constraint}`)
  const synthetic = importer?.synthetic ?? []
  if (synthetic.length > 0) lines.push(`  made up  ${synthetic.join(', ')}`)
  return `${lines.join('\n')}\n`
}

function isFileFault(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error
}
