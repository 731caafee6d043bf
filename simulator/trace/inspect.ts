import type { TraceTask } from './trace-format.ts'
import type { TraceFile } from './trace-file-reader.ts'
import { aloneMsOf, busyMsOf } from './work.ts'

/** Summary of a trace, to read before a replay. Percentiles by nearest rank; null without values. */
export interface TraceSummary {
  readonly trace: string
  readonly sha256: string
  readonly tasks: number
  readonly rows: number
  readonly dropped: Readonly<Record<string, number>>
  /** Kept rows with an ignored constraint, and with a corrected value. */
  readonly ignored: Readonly<Record<string, number>>
  readonly adjusted: Readonly<Record<string, number>>
  /** Origin and licence; null if the header does not contain them. */
  readonly format: string | null
  readonly source: string | null
  readonly licence: string | null
  /** From the first arrival to the last. */
  readonly arrival_span_s: number
  /** Tasks by number of GPUs. */
  readonly gpus: Readonly<Record<string, number>>
  /** Tasks by priority, P0 to P4. */
  readonly priorities: Readonly<Record<string, number>>
  readonly exclusive: number
  readonly noswap: number
  readonly cancelled: number
  /** VRAM of the tasks that declare it. */
  readonly vram_mib: { readonly p50: number | null; readonly p95: number | null; readonly max: number | null }
  /** Wall time of a task that runs alone. */
  readonly duration_s: {
    readonly p50: number | null
    readonly p95: number | null
    readonly max: number | null
  }
  /** GPU work, counted on every GPU of a task. */
  readonly busy_gpu_hours: number
  /** Share of the GPU time without GPU work, for tasks that run alone. */
  readonly idle_share: number | null
  /** Fields that were made up, or null without an importer. */
  readonly synthetic: readonly string[] | null
}

/**
 * Reads the whole trace; memory is 16 bytes per task. Throws TraceError.
 * @param onTasks called with the number of tasks so far
 */
export async function inspectTrace(
  trace: TraceFile,
  onTasks: (tasks: number) => void = () => {},
): Promise<TraceSummary> {
  const totals = createTotals()
  for await (const batch of trace.batches()) {
    for (const task of batch) add(totals, task)
    onTasks(totals.tasks)
  }
  const { source, importer } = trace.header
  return {
    trace: trace.header.trace,
    sha256: trace.sha256(),
    tasks: totals.tasks,
    rows: trace.header.rows,
    dropped: trace.header.dropped,
    ignored: importer?.ignored ?? {},
    adjusted: importer?.adjusted ?? {},
    format: importer?.format ?? null,
    source: source?.file ?? null,
    licence: source?.licence ?? null,
    arrival_span_s: totals.tasks === 0 ? 0 : (totals.lastAt - totals.firstAt) / 1000,
    gpus: Object.fromEntries(totals.gpus),
    priorities: Object.fromEntries(totals.priorities.map((count, priority) => [`P${priority}`, count])),
    exclusive: totals.exclusive,
    noswap: totals.noswap,
    cancelled: totals.cancelled,
    vram_mib: percentiles(totals.vramMib),
    duration_s: percentiles(totals.durationS),
    busy_gpu_hours: totals.busyGpuMs / 3_600_000,
    idle_share: totals.aloneGpuMs === 0 ? null : 1 - totals.busyGpuMs / totals.aloneGpuMs,
    synthetic: importer?.synthetic ?? null,
  }
}

/** The summary for a terminal, one fact per line. */
export function formatSummary(summary: TraceSummary): string {
  const facts: Array<readonly [string, string]> = [
    ['trace', summary.trace],
    ['sha256', summary.sha256],
    ['tasks', summary.rows === 0 ? String(summary.tasks) : `${summary.tasks} of ${summary.rows} rows`],
    ['dropped', counts(summary.dropped)],
    ['adjusted', counts(summary.adjusted)],
    ['ignored', counts(summary.ignored)],
    [
      'from',
      [summary.format, summary.source, summary.licence].filter((text) => text !== null).join(', ') ||
        'unknown',
    ],
    ['arrivals', `over ${hours(summary.arrival_span_s)}`],
    ['GPUs', counts(summary.gpus)],
    ['priorities', counts(summary.priorities)],
    ['exclusive', String(summary.exclusive)],
    ['noswap', String(summary.noswap)],
    ['cancelled', String(summary.cancelled)],
    ['VRAM, MiB', three(summary.vram_mib, String)],
    ['duration', three(summary.duration_s, hours)],
    ['GPU work', `${summary.busy_gpu_hours.toFixed(1)} GPU-hours`],
    [
      'idle',
      summary.idle_share === null ? 'unknown' : `${(100 * summary.idle_share).toFixed(1)}% of GPU time`,
    ],
    ['synthetic', summary.synthetic === null ? 'unknown' : summary.synthetic.join(', ') || 'nothing'],
  ]
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('')
}

interface Totals {
  tasks: number
  firstAt: number
  lastAt: number
  exclusive: number
  noswap: number
  cancelled: number
  busyGpuMs: number
  aloneGpuMs: number
  readonly gpus: Map<number, number>
  readonly priorities: number[]
  readonly vramMib: number[]
  readonly durationS: number[]
}

function createTotals(): Totals {
  return {
    tasks: 0,
    firstAt: Infinity,
    lastAt: -Infinity,
    exclusive: 0,
    noswap: 0,
    cancelled: 0,
    busyGpuMs: 0,
    aloneGpuMs: 0,
    gpus: new Map(),
    priorities: [0, 0, 0, 0, 0],
    vramMib: [],
    durationS: [],
  }
}

function add(totals: Totals, task: TraceTask): void {
  const aloneMs = aloneMsOf(task.work)
  totals.tasks++
  totals.firstAt = Math.min(totals.firstAt, task.at)
  totals.lastAt = Math.max(totals.lastAt, task.at)
  if (task.gpu_mode === 'exclusive') totals.exclusive++
  totals.noswap += task.noswap
  if (task.cancel_at !== null) totals.cancelled++
  totals.busyGpuMs += task.gpus * busyMsOf(task.work)
  totals.aloneGpuMs += task.gpus * aloneMs
  totals.gpus.set(task.gpus, (totals.gpus.get(task.gpus) ?? 0) + 1)
  totals.priorities[task.priority]!++
  if (task.vram_mib > 0) totals.vramMib.push(task.vram_mib)
  totals.durationS.push(aloneMs / 1000)
}

function percentiles(values: number[]): { p50: number | null; p95: number | null; max: number | null } {
  const sorted = values.sort((a, b) => a - b)
  const rank = (percent: number): number | null =>
    sorted[Math.ceil((percent * sorted.length) / 100) - 1] ?? null
  return { p50: rank(50), p95: rank(95), max: rank(100) }
}

function counts(record: Readonly<Record<string, number>>): string {
  const parts = Object.entries(record).filter(([, count]) => count > 0)
  return parts.length === 0 ? 'none' : parts.map(([key, count]) => `${key}: ${count}`).join(', ')
}

function three(
  values: { p50: number | null; p95: number | null; max: number | null },
  format: (value: number) => string,
): string {
  const show = (value: number | null): string => (value === null ? 'none' : format(value))
  return `p50 ${show(values.p50)}, p95 ${show(values.p95)}, max ${show(values.max)}`
}

function hours(seconds: number): string {
  return seconds < 3600 ? `${seconds.toFixed(1)} s` : `${(seconds / 3600).toFixed(1)} h`
}
