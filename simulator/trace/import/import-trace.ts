import { basename } from 'node:path'
import { type ActivityModel, activityModel } from '../activity.ts'
import { type Seed, seededStream } from '../../kernel/seeded-random.ts'
import { inArrivalOrder } from './arrival-order.ts'
import { openBytes, type FileBytes } from '../file-bytes.ts'
import {
  DEFAULT_TASK_VRAM_MIB,
  type ImportedTask,
  type Importer,
  type ImportLog,
  type ImportOptions,
} from './importer.ts'
import { createSelection, DEFAULT_SELECTION_SEED, type UnselectedReason } from '../select.ts'
import { openSpillFile } from './spill-file.ts'
import { TraceError } from '../trace-error.ts'
import { TRACE_VERSION, type TraceHeader, type TraceTask } from '../trace-format.ts'

export interface ImportedTrace {
  readonly header: TraceHeader
  readonly taskCount: number
  /** In the order of arrival. May be read repeatedly; phases are generated on the way, one task at a time. */
  readonly tasks: AsyncIterable<TraceTask>
  /** Releases the storage of the sort. */
  close(): Promise<void>
}

/** Maximum length of texts in a trace. */
const MAX_ID_LENGTH = 256

/**
 * Turns a foreign file into a trace:
 * 1. the importer's tasks, all rows accounted for;
 * 2. in the order of arrival, then of the source (sources are not sorted; what memory does not hold is sorted
 *    in `spillFolder`);
 * 3. `at` counted from the first of them, unless keepOffset;
 * 4. the selection;
 * 5. work made by the activity model, from a stream of its own for each task, so that one task more or less
 *    changes no other. Throws TraceError, also when no task is left: a plan for an empty trace would be
 *    advice about nothing.
 */
export async function importTrace(
  importer: Importer,
  file: string,
  options: ImportOptions,
): Promise<ImportedTrace> {
  const seed = options.seed ?? DEFAULT_SELECTION_SEED
  const model = activityModel(options.activityModel ?? 'always-busy')
  const select = createSelection(options)
  const source = await openBytes(file)
  const log = createLog(source, options)
  const tasks = withUsableIds(importer.read(source, options, log), log)
  const order = await inArrivalOrder(tasks, () => openSpillFile(options.spillFolder)).finally(() =>
    source.close(),
  )
  for (let i = 0; i < order.duplicates; i++) log.drop('duplicate_id')
  const selected = (): AsyncGenerator<ImportedTask | UnselectedReason> =>
    selectedFrom(order.tasks(), select, options.keepOffset === true)
  const kept = await countSelected(selected(), log).catch(async (error: unknown) => {
    await order.close()
    throw error
  })
  if (kept.tasks === 0) {
    await order.close()
    throw new TraceError({ file }, nothingKept(log))
  }
  return {
    header: {
      trace: options.name ?? basename(file),
      version: TRACE_VERSION,
      t_unit: 'ms',
      source: {
        file: basename(file),
        sha256: source.sha256(),
        licence: options.licence ?? importer.licence,
        origin: importer.origin,
      },
      importer: {
        format: importer.format,
        options: { ...recordedOptions(options, kept.hasResidence), seed, ...log.notes },
        synthetic: syntheticFields(kept, options, log),
        ignored: log.ignored,
        adjusted: log.adjusted,
      },
      rows: log.rows(),
      dropped: log.dropped,
    },
    taskCount: kept.tasks,
    tasks: {
      async *[Symbol.asyncIterator]() {
        for await (const task of selected()) {
          if (typeof task !== 'string') yield finished(task, options, model, seed)
        }
      },
    },
    close: () => order.close(),
  }
}

async function* withUsableIds(
  tasks: AsyncIterable<ImportedTask>,
  log: ImportLog,
): AsyncGenerator<ImportedTask> {
  for await (const task of tasks) {
    if (task.id.length <= MAX_ID_LENGTH) yield task
    else log.drop('long_id')
  }
}

async function* selectedFrom(
  tasks: AsyncIterable<ImportedTask>,
  select: ReturnType<typeof createSelection>,
  keepsOffset: boolean,
): AsyncGenerator<ImportedTask | UnselectedReason> {
  let zeroMs: number | null = null
  for await (const task of tasks) {
    if (zeroMs === null) {
      zeroMs = keepsOffset ? 0 : task.at
      if (task.at < zeroMs)
        throw new TraceError(
          { field: 'keep_offset' },
          `cannot be kept: task ${task.id} arrives before the source's zero`,
        )
    }
    yield select(
      zeroMs === 0
        ? task
        : {
            ...task,
            at: task.at - zeroMs,
            cancel_at: task.cancel_at === null ? null : task.cancel_at - zeroMs,
          },
    )
  }
}

interface KeptTasks {
  readonly tasks: number
  readonly hasResidence: boolean
  readonly hasVram: boolean
  /** Some task uses whole GPUs and its VRAM is unknown. */
  readonly hasUnknownVram: boolean
}

/** The header comes before the tasks and contains their counts, so the tasks are read once for it. */
async function countSelected(
  selected: AsyncIterable<ImportedTask | UnselectedReason>,
  log: ImportLog,
): Promise<KeptTasks> {
  let tasks = 0
  let [hasResidence, hasVram, hasUnknownVram] = [false, false, false]
  for await (const task of selected) {
    if (typeof task === 'string') {
      log.drop(task)
      continue
    }
    tasks += 1
    hasResidence ||= task.work.kind === 'residence'
    hasVram ||= task.vram_mib > 0
    hasUnknownVram ||= task.vram_mib === 0
  }
  return { tasks, hasResidence, hasVram, hasUnknownVram }
}

/** `keeps no row of 82248: 82248 wrong_number_of_fields`. */
function nothingKept(log: CountingLog): string {
  const reasons = Object.entries(log.dropped).map(([reason, count]) => `${count} ${reason}`)
  return reasons.length === 0 ? 'has no row' : `keeps no row of ${log.rows()}: ${reasons.join(', ')}`
}

function finished(task: ImportedTask, options: ImportOptions, model: ActivityModel, seed: Seed): TraceTask {
  const work =
    task.work.kind === 'residence'
      ? model(task.work.ms, seededStream(seed, `activity/${task.id}`))
      : task.work
  if (options.exclusive === true) return { ...task, work, gpu_mode: 'exclusive', vram_mib: 0, alloc: [] }
  if (options.shared !== true || task.gpu_mode === 'shared') return { ...task, work }
  return {
    ...task,
    work,
    gpu_mode: 'shared',
    vram_mib: task.vram_mib || (options.vramMib ?? DEFAULT_TASK_VRAM_MIB),
  }
}

/** If a source contains no VRAM, the VRAM of its tasks is made up, or they use whole GPUs, or both occur. */
function syntheticFields(kept: KeptTasks, options: ImportOptions, log: CountingLog): string[] {
  const { exclusive = false, shared = false } = options
  const isVramMadeUp = log.synthetic.includes('vram_mib')
  const isModeMadeUp = isVramMadeUp && kept.hasUnknownVram && !exclusive && !shared
  return [
    ...log.synthetic.filter((field) => field !== 'vram_mib' && field !== 'activity'),
    ...(isVramMadeUp && !exclusive && (kept.hasVram || shared) ? ['vram_mib'] : []),
    ...(isModeMadeUp ? ['gpu_mode'] : []),
    ...(kept.hasResidence || log.synthetic.includes('activity') ? ['activity'] : []),
  ]
}

/** The options as stored in the header: no paths, only those that were given. */
function recordedOptions(options: ImportOptions, isActivityMadeUp: boolean): Record<string, unknown> {
  const given: Record<string, unknown> = {
    activity_model: options.activityModel ?? (isActivityMadeUp ? 'always-busy' : undefined),
    exclusive: options.exclusive,
    shared: options.shared,
    from_ms: options.fromMs,
    to_ms: options.toMs,
    sample: options.sample,
    time_scale: options.timeScale,
    max_gpus: options.maxGpus,
    keep_offset: options.keepOffset,
    vram_mib: options.vramMib,
    reserve_mib: options.reserveMib,
    vram_map: options.vramMap && Object.fromEntries(options.vramMap),
    priority_map: options.priorityMap && Object.fromEntries(options.priorityMap),
    columns: options.columns && Object.fromEntries(options.columns),
    delimiter: options.delimiter,
    time_unit: options.timeUnit,
    processors_per_gpu: options.processorsPerGpu,
    servers: options.servers,
    server_skew: options.serverSkew,
    server_life_ms: options.serverLifeMs,
    prefill_tokens_per_s: options.prefillTokensPerS,
    decode_tokens_per_s: options.decodeTokensPerS,
    busy_above_percent: options.busyAbovePercent,
    vram_above_mib: options.vramAboveMib,
    gap_ms: options.gapMs,
    interval_ms: options.intervalMs,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

interface CountingLog extends ImportLog {
  rows(): number
  readonly dropped: Record<string, number>
  readonly ignored: Record<string, number>
  readonly adjusted: Record<string, number>
  readonly synthetic: string[]
  readonly notes: Record<string, string | number>
}

const ROWS_BETWEEN_NEWS = 4096

function createLog(source: FileBytes, { onProgress }: ImportOptions): CountingLog {
  let rows = 0
  const log = {
    dropped: {},
    ignored: {},
    adjusted: {},
    synthetic: [] as string[],
    notes: {} as Record<string, string | number>,
  }
  const count = (counts: Record<string, number>, key: string): void =>
    void (counts[key] = (counts[key] ?? 0) + 1)
  return {
    ...log,
    rows: () => rows,
    row() {
      rows += 1
      if (onProgress !== undefined && rows % ROWS_BETWEEN_NEWS === 0) onProgress(source.readFraction(), rows)
    },
    drop: (reason) => count(log.dropped, reason),
    ignore: (constraint) => count(log.ignored, constraint),
    adjust: (correction) => count(log.adjusted, correction),
    synthesise: (field) => void log.synthetic.push(field),
    note: (key, value) => void (log.notes[key] = value),
  }
}
