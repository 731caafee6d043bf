import type { DurationMs, Mib, Priority } from '../../../protocol/units.ts'
import type { ActivityModelName } from '../activity.ts'
import type { FileBytes } from '../file-bytes.ts'
import type { TraceSelection } from '../select.ts'
import type { TraceTask, Work } from '../trace-format.ts'
import type { VramMap } from './vram-map.ts'

/**
 * Reads one foreign format. One file each; import-trace.ts does what all have in common (order, selection,
 * activity, header).
 */
export interface Importer extends ImporterWords {
  /** The word on the command line. */
  readonly format: TraceFormat
  /** Of the format's well-known data; null when the format says nothing about it. */
  readonly licence: string | null
  readonly origin: string | null
  /** Options that only some formats take. */
  readonly options: readonly FormatOption[]
  /**
   * The tasks of a source, streamed, in any order of arrival; of tasks that arrive together the first is
   * submitted first. Counts every row in `log`, and why it was dropped where it was. Throws TraceError for a
   * source that cannot be used at all (columns missing, a GPU model without VRAM).
   */
  read(source: FileBytes, options: ImportOptions, log: ImportLog): AsyncIterable<ImportedTask>
}

/**
 * What people are told of a format; docs/trace-format.md is made of it. Reasons are counted under these
 * names.
 */
export interface ImporterWords {
  /** What kind of file it is, and where it comes from. */
  readonly about: string
  /** Columns or fields of the source, and what becomes of them. */
  readonly columns: readonly SourceColumn[]
  /**
   * Reasons for dropping a row, beside `no_COLUMN` (nothing in it) and `bad_COLUMN` (not what it should be)
   * of a column, and COMMON_REASONS.
   */
  readonly dropped: Readonly<Record<string, string>>
  /** Constraints of kept rows that Headroom has no word for. */
  readonly ignored: Readonly<Record<string, string>>
  /** Corrections of kept rows. */
  readonly adjusted: Readonly<Record<string, string>>
  /** Public data in this format: name, licence, where it is. */
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

/** Why a row of any format may be dropped. */
export const COMMON_REASONS: Readonly<Record<string, string>> = {
  wrong_number_of_columns: 'more or fewer cells than the header has',
  long_id: 'its id has more than 256 characters',
  duplicate_id: 'a task with this id stands earlier in the source',
  outside_window: 'arrives before `--from`, or at or after `--to`',
  too_many_gpus: 'asks for more than `--max-gpus`',
  not_sampled: '`--sample` left it out',
}

/** What a row says, on the source's own time axis (whole ms from any zero). */
export interface ImportedTask extends Omit<TraceTask, 'work'> {
  /**
   * `residence`: only how long the task was there is known (1 ms or more); the activity model makes work out
   * of it.
   */
  readonly work: Work | { readonly kind: 'residence'; readonly ms: DurationMs }
}

export interface ImportLog {
  row(): void
  /** Once for each row that is not kept. */
  drop(reason: string): void
  /** A kept row carried a constraint that Headroom has no word for. */
  ignore(constraint: string): void
  /** A kept row's value was corrected. */
  adjust(correction: string): void
  /** A field of the tasks was made up. */
  synthesise(field: string): void
  /** Something that whoever repeats the import wants to know. */
  note(key: string, value: string | number): void
}

/**
 * All formats take the same options; the selection works on time since the first usable row (or the source's
 * own zero with keepOffset).
 */
export interface ImportOptions extends TraceSelection, FormatOptions {
  /** Name of the trace. Default: the source's file name. */
  readonly name?: string
  /** SPDX id. Default: the importer's. */
  readonly licence?: string
  /** Default `always-busy`, unless the source itself says when GPUs worked. */
  readonly activityModel?: ActivityModelName
  /** Every task takes whole GPUs for itself, with whatever VRAM they have. */
  readonly exclusive?: boolean
  /** Every task shares its GPUs, whatever the source says. Not together with `exclusive`. */
  readonly shared?: boolean
  /** VRAM for each GPU of a task where the source gives no clue. Default DEFAULT_TASK_VRAM_MIB. */
  readonly vramMib?: Mib
  /** VRAM of GPU models, over DEFAULT_VRAM_MAP. */
  readonly vramMap?: VramMap
  /** Priority by the source's word for it (QoS class, partition, …), over the format's own. */
  readonly priorityMap?: ReadonlyMap<string, Priority>
  /** What stays free on each GPU. Default DEFAULT_RESERVE_MIB. */
  readonly reserveMib?: Mib
  /**
   * Where records are sorted that do not fit into memory. Default: the system's folder for temporary files.
   */
  readonly spillFolder?: string
  /** Hears now and then how much of the file has been read (0 to 1), and how many rows. */
  readonly onProgress?: (fraction: number, rows: number) => void
}

/** Each is taken by some formats only (`Importer.options`). */
export interface FormatOptions {
  /** The list of the cluster's nodes. */
  readonly nodesFile?: string
  /** Which column of the source holds which field of a task. */
  readonly columns?: ReadonlyMap<string, string>
  /** Between cells, one character. */
  readonly delimiter?: string
  /** What bare numbers count. Default seconds. */
  readonly timeUnit?: TimeUnit
  /** How many processors of the source are one GPU. Default 1. */
  readonly processorsPerGpu?: number
  /** How many servers share the requests. */
  readonly servers?: number
  /** 0: all servers get as many requests; s: the k-th most asked gets them in proportion to k^-s. */
  readonly serverSkew?: number
  /** A server is replaced by another task after this. */
  readonly serverLifeMs?: DurationMs
  readonly prefillTokensPerS?: number
  readonly decodeTokensPerS?: number
  /** A sample with a utilization above this is GPU work. In percent. */
  readonly busyAbovePercent?: number
  /** A sample with more VRAM in use than this has a task in it. */
  readonly vramAboveMib?: Mib
  /** A task has ended when there is no sample for so long. */
  readonly gapMs?: DurationMs
  /** Between two samples of a GPU, where they carry no time. */
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

/** An assumption of our own. */
export const DEFAULT_TASK_VRAM_MIB: Mib = 8192

/** Specification 8. */
export const DEFAULT_RESERVE_MIB: Mib = 2048

/** All that a task may have on one node. */
export const MAX_TASK_GPUS = 1024

type Given = Pick<ImportedTask, 'id' | 'at' | 'gpus' | 'work'> & Partial<ImportedTask>

/**
 * Completes a task with what most sources leave out: P2, no groups, and the GPU mode. A task whose VRAM is
 * unknown takes whole GPUs, as it did in its source; with a VRAM size from the source or the options it
 * shares them (decision 0094).
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

/** The priority of the first of these words that the map knows, or that one. */
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

/** Names that a trace can hold; a longer one keeps its beginning. */
export function ownerOf(text: string): string | null {
  return text === '' ? null : text.slice(0, MAX_TEXT)
}
