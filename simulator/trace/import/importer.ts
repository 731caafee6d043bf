import type { DurationMs, Mib, Priority } from '../../../protocol/units.ts'
import type { ActivityModelName } from '../activity.ts'
import type { FileBytes } from '../file-bytes.ts'
import type { TraceSelection } from '../select.ts'
import type { TraceTask, Work } from '../trace-format.ts'
import type { VramMap } from './vram-map.ts'

/**
 * Reads one foreign format. One file per format; import-trace.ts does what all have in common (order,
 * selection, activity, header).
 */
export interface Importer extends ImporterWords {
  /** Name on the command line. */
  readonly format: TraceFormat
  /** License of the format's well-known data; null if the format does not determine it. */
  readonly licence: string | null
  readonly origin: string | null
  /** Options that only some formats support. */
  readonly options: readonly FormatOption[]
  /**
   * The tasks of a source, streamed, in any order of arrival; of tasks that arrive together, the first is
   * submitted first. Counts every row in `log`, with the reason if it is dropped. Throws TraceError for an
   * unusable source (columns missing, a GPU model without VRAM).
   */
  read(source: FileBytes, options: ImportOptions, log: ImportLog): AsyncIterable<ImportedTask>
}

/** Description of a format, the source of docs/trace-format.md. Reasons are counted under these names. */
export interface ImporterWords {
  /** Kind and origin of the file. */
  readonly about: string
  /** Columns or fields of the source, and their use. */
  readonly columns: readonly SourceColumn[]
  /** Reasons for dropping a row, besides `no_COLUMN` (empty), `bad_COLUMN` (invalid) and COMMON_REASONS. */
  readonly dropped: Readonly<Record<string, string>>
  /** Constraints of kept rows that Headroom does not support. */
  readonly ignored: Readonly<Record<string, string>>
  /** Corrections of kept rows. */
  readonly adjusted: Readonly<Record<string, string>>
  /** Public data in this format: name, licence, location. */
  readonly publicData: readonly PublicData[]
}

export interface SourceColumn {
  readonly name: string
  readonly isRequired: boolean
  readonly becomes: string
}

export interface PublicData {
  readonly name: string
  readonly licence: string
  readonly where: string
}

/** Reasons for dropping a row of any format. */
export const COMMON_REASONS: Readonly<Record<string, string>> = {
  wrong_number_of_columns: 'more or fewer cells than the header',
  long_id: 'its ID has more than 256 characters',
  duplicate_id: 'a task with this ID comes earlier in the source',
  outside_window: 'arrives before `--from`, or at or after `--to`',
  too_many_gpus: 'requests more than `--max-gpus`',
  not_sampled: '`--sample` left it out',
}

/** The data of a row, on the source's own time axis (whole ms from any zero). */
export interface ImportedTask extends Omit<TraceTask, 'work'> {
  /**
   * `residence`: only the duration of the task's presence is known (1 ms or more); the activity model
   * generates its work.
   */
  readonly work: Work | { readonly kind: 'residence'; readonly ms: DurationMs }
}

export interface ImportLog {
  row(): void
  /** Called once for each dropped row. */
  drop(reason: string): void
  /** A kept row has a constraint that Headroom does not support. */
  ignore(constraint: string): void
  /** A kept row's value was corrected. */
  adjust(correction: string): void
  /** A field of the tasks was made up. */
  synthesise(field: string): void
  /** A note for a person who repeats the import. */
  note(key: string, value: string | number): void
}

/**
 * All formats accept the same options; the selection uses the time since the first usable row (or the
 * source's own zero with keepOffset).
 */
export interface ImportOptions extends TraceSelection, FormatOptions {
  /** Name of the trace. Default: the source's file name. */
  readonly name?: string
  /** SPDX id. Default: the importer's. */
  readonly licence?: string
  /** Default `always-busy`, unless the source itself says when GPUs worked. */
  readonly activityModel?: ActivityModelName
  /** Every task uses whole GPUs exclusively, with whatever VRAM they have. */
  readonly exclusive?: boolean
  /** Every task shares its GPUs, whatever the source says. Not together with `exclusive`. */
  readonly shared?: boolean
  /** VRAM on each GPU of a task if the source contains none. Default DEFAULT_TASK_VRAM_MIB. */
  readonly vramMib?: Mib
  /** VRAM of GPU models, in addition to DEFAULT_VRAM_MAP. */
  readonly vramMap?: VramMap
  /** Priority by a value of the source (QoS class, partition, …), in addition to the format's own. */
  readonly priorityMap?: ReadonlyMap<string, Priority>
  /** VRAM that stays free on each GPU. Default DEFAULT_RESERVE_MIB. */
  readonly reserveMib?: Mib
  /**
   * Folder for sorting records that do not fit in memory. Default: the system's folder for temporary files.
   */
  readonly spillFolder?: string
  /** Called at intervals with the share of the file that was read (0 to 1), and the number of rows. */
  readonly onProgress?: (fraction: number, rows: number) => void
}

/** Each is supported by some formats only (`Importer.options`). */
export interface FormatOptions {
  /** The node list of the cluster. */
  readonly nodesFile?: string
  /** Columns of the fields of a task. */
  readonly columns?: ReadonlyMap<string, string>
  /** Separator of cells, one character. */
  readonly delimiter?: string
  /** Unit of bare numbers. Default: seconds. */
  readonly timeUnit?: TimeUnit
  /** Processors of the source per GPU. Default 1. */
  readonly processorsPerGpu?: number
  /** Number of servers that share the requests. */
  readonly servers?: number
  /** 0: all servers get the same number of requests; s: server k gets a share in proportion to k^-s. */
  readonly serverSkew?: number
  /** A server is replaced by another task after this time. */
  readonly serverLifeMs?: DurationMs
  readonly prefillTokensPerS?: number
  readonly decodeTokensPerS?: number
  /** A sample with a higher utilization is GPU work. In percent. */
  readonly busyAbovePercent?: number
  /** A sample with more VRAM in use belongs to a task. */
  readonly vramAboveMib?: Mib
  /** A task has ended after this time without a sample. */
  readonly gapMs?: DurationMs
  /** Time between two samples of a GPU, if they contain no time. */
  readonly intervalMs?: DurationMs
}

export type FormatOption = keyof FormatOptions

/** Every format that can be imported. A new one is a file of its own and a line in `importers.ts`. */
export const TRACE_FORMATS = [
  'headroom',
  'csv',
  'slurm',
  'openb',
  'philly',
  'helios',
  'swf',
  'tiresias',
  'gavel',
  'azure-llm',
  'nvidia-smi',
  'dcgm',
] as const
export type TraceFormat = (typeof TRACE_FORMATS)[number]

export const TIME_UNITS = ['s', 'ms', 'us', 'ns'] as const
export type TimeUnit = (typeof TIME_UNITS)[number]

/** An assumption of Headroom. */
export const DEFAULT_TASK_VRAM_MIB: Mib = 8192

/** Specification 8. */
export const DEFAULT_RESERVE_MIB: Mib = 2048

/** Maximum GPUs of a task on one node. */
export const MAX_TASK_GPUS = 1024

type Given = Pick<ImportedTask, 'id' | 'at' | 'gpus' | 'work'> & Partial<ImportedTask>

/**
 * Completes a task with defaults for what most sources lack: P2, no groups, and the GPU mode. A task with
 * unknown VRAM uses whole GPUs, as in its source; with a VRAM size from the source or the options it shares
 * them (decision 0094).
 */
export function plainTask(given: Given, options: ImportOptions): ImportedTask {
  const isShared = options.shared === true || options.vramMib !== undefined || given.vram_mib !== undefined
  return {
    vram_mib: options.vramMib ?? (isShared ? DEFAULT_TASK_VRAM_MIB : 0),
    gpu_mode: isShared ? 'shared' : 'exclusive',
    priority: 2,
    noswap: 0,
    groups: [],
    owner: null,
    alloc: [],
    cancel_at: null,
    ...given,
  }
}

/** The priority of the first of these values in the map, or the default. */
export function priorityOf(
  words: readonly string[],
  { priorityMap }: ImportOptions,
  otherwise: Priority = 2,
): Priority {
  if (priorityMap === undefined) return otherwise
  for (const word of words) {
    const priority = priorityMap.get(word)
    if (priority !== undefined) return priority
  }
  return otherwise
}

const MAX_TEXT = 256

/** A name that fits in a trace; a longer one is cut off. */
export function ownerOf(text: string): string | null {
  return text === '' ? null : text.slice(0, MAX_TEXT)
}
