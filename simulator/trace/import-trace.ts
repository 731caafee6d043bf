import { basename } from 'node:path'
import { type ActivityModel, activityModel } from '../fleet/activity.ts'
import { type Seed, seededStream } from '../seeded-random.ts'
import { openBytes } from './file-bytes.ts'
import type { ImportedTask, Importer, ImportLog, ImportOptions } from './importer.ts'
import { createSelection, DEFAULT_SELECTION_SEED } from './select.ts'
import { TraceError } from './trace-error.ts'
import { TRACE_VERSION, type TraceHeader, type TraceTask } from './trace-format.ts'

export interface ImportedTrace {
  readonly header: TraceHeader
  readonly taskCount: number
  /** In the order of arrival. May be gone through again; phases are made on the way, one task at a time. */
  readonly tasks: Iterable<TraceTask>
}

/**
 * Turns a foreign file into a trace:
 * 1. the importer's tasks, all rows accounted for;
 * 2. in the order of arrival, then of their lines (sources are not sorted, so that one small record for each task is held in memory);
 * 3. `at` counted from the first of them, unless keepOffset;
 * 4. the selection;
 * 5. work made by the activity model, from a stream of its own for each task, so that one task more or less changes no other.
 * Throws TraceError.
 */
export async function importTrace(importer: Importer, file: string, options: ImportOptions): Promise<ImportedTrace> {
  const seed = options.seed ?? DEFAULT_SELECTION_SEED
  const model = activityModel(options.activityModel ?? 'always-busy')
  const log = createLog()
  const source = await openBytes(file)
  const found = await readAll(importer.read(source, options, log), log).finally(() => source.close())
  const selected = selectFrom(found, options, log)
  return {
    header: {
      trace: options.name ?? basename(file),
      version: TRACE_VERSION,
      t_unit: 'ms',
      source: { file: basename(file), sha256: source.sha256(), licence: options.licence ?? importer.licence, origin: importer.origin },
      importer: {
        format: importer.format,
        options: { ...recordedOptions(options), seed, ...log.notes },
        synthetic: syntheticFields(selected, options, log),
        ignored: log.ignored,
        adjusted: log.adjusted,
      },
      rows: log.rows(),
      dropped: log.dropped,
    },
    taskCount: selected.length,
    tasks: {
      *[Symbol.iterator]() {
        for (const task of selected) yield finished(task, options.exclusive === true, model, seed)
      },
    },
  }
}

async function readAll(tasks: AsyncIterable<ImportedTask>, log: ImportLog): Promise<ImportedTask[]> {
  const found: ImportedTask[] = []
  const ids = new Set<string>()
  for await (const task of tasks) {
    if (ids.has(task.id)) {
      log.drop('duplicate_id')
      continue
    }
    ids.add(task.id)
    found.push(task)
  }
  return found.sort(byArrival)
}

/**
 * 1. Arrival.
 * 2. Line in the source.
 */
function byArrival(a: ImportedTask, b: ImportedTask): number {
  return a.at - b.at || a.line - b.line
}

function selectFrom(found: readonly ImportedTask[], options: ImportOptions, log: ImportLog): ImportedTask[] {
  const select = createSelection(options)
  const zeroMs = found.length === 0 || options.keepOffset === true ? 0 : found[0]!.at
  if (options.keepOffset === true && found.length > 0 && found[0]!.at < 0) {
    throw new TraceError({ field: 'keep_offset' }, `cannot be kept: task ${found[0]!.id} arrives before the source's zero`)
  }
  const selected: ImportedTask[] = []
  for (const task of found) {
    const result = select(
      zeroMs === 0 ? task : { ...task, at: task.at - zeroMs, cancel_at: task.cancel_at === null ? null : task.cancel_at - zeroMs },
    )
    if (typeof result === 'string') log.drop(result)
    else selected.push(result)
  }
  return selected
}

function finished({ line: _line, ...task }: ImportedTask, isExclusive: boolean, model: ActivityModel, seed: Seed): TraceTask {
  const work = task.work.kind === 'residence' ? model(task.work.ms, seededStream(seed, `activity/${task.id}`)) : task.work
  return isExclusive ? { ...task, work, gpu_mode: 'exclusive', vram_mib: 0, alloc: [] } : { ...task, work }
}

function syntheticFields(selected: readonly ImportedTask[], options: ImportOptions, log: CountingLog): string[] {
  const fields = options.exclusive === true ? log.synthetic.filter((field) => field !== 'vram_mib') : [...log.synthetic]
  if (selected.some((task) => task.work.kind === 'residence')) fields.push('activity')
  return fields
}

/** The options as the header keeps them: no paths, only what was given. */
function recordedOptions(options: ImportOptions): Record<string, unknown> {
  const given: Record<string, unknown> = {
    activity_model: options.activityModel ?? 'always-busy',
    exclusive: options.exclusive,
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

function createLog(): CountingLog {
  let rows = 0
  const log = { dropped: {}, ignored: {}, adjusted: {}, synthetic: [] as string[], notes: {} as Record<string, string | number> }
  const count = (counts: Record<string, number>, key: string): void => void (counts[key] = (counts[key] ?? 0) + 1)
  return {
    ...log,
    rows: () => rows,
    row: () => void rows++,
    drop: (reason) => count(log.dropped, reason),
    ignore: (constraint) => count(log.ignored, constraint),
    adjust: (correction) => count(log.adjusted, correction),
    synthesise: (field) => void log.synthetic.push(field),
    note: (key, value) => void (log.notes[key] = value),
  }
}
