import type { DurationMs, Mib, Priority } from '../../protocol/units.ts'
import type { ActivityModelName } from '../fleet/activity.ts'
import type { FileBytes } from './file-bytes.ts'
import type { TraceSelection } from './select.ts'
import type { TraceTask, Work } from './trace-format.ts'
import type { VramMap } from './vram-map.ts'

/** Reads one foreign format. One file each; import-trace.ts does what all have in common (order, selection, activity, header). */
export interface Importer {
  /** The word on the command line. */
  readonly format: string
  /** Columns (or fields) without which nothing can be imported, for the help text. */
  readonly requiredColumns: readonly string[]
  /** Of the format's well-known data; null when the format says nothing about it. */
  readonly licence: string | null
  readonly origin: string | null
  /**
   * The tasks of a source, in any order, streamed. Counts every row in `log`, and why it was dropped where it was.
   * Throws TraceError for a source that cannot be used at all (columns missing, a GPU model without VRAM).
   */
  read(source: FileBytes, options: ImportOptions, log: ImportLog): AsyncIterable<ImportedTask>
}

/** What a row says, on the source's own time axis (whole ms from any zero). */
export interface ImportedTask extends Omit<TraceTask, 'work'> {
  /** Line in the source. Among equal arrivals the earlier line is submitted first. */
  readonly line: number
  /** `residence`: only how long the task was there is known (1 ms or more); the activity model makes work out of it. */
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

/** All formats take the same options; the selection works on time since the first usable row (or the source's own zero with keepOffset). */
export interface ImportOptions extends TraceSelection {
  /** Name of the trace. Default: the source's file name. */
  readonly name?: string
  /** SPDX id. Default: the importer's. */
  readonly licence?: string
  /** Default `always-busy`. */
  readonly activityModel?: ActivityModelName
  /** Every task takes whole GPUs for itself, with whatever VRAM they have. */
  readonly exclusive?: boolean
  /** VRAM for each GPU of a task where the source gives no clue. Default DEFAULT_TASK_VRAM_MIB. */
  readonly vramMib?: Mib
  /** VRAM of GPU models, over DEFAULT_VRAM_MAP. */
  readonly vramMap?: VramMap
  /** Priority by the source's word for it (QoS class, partition, …), over the format's own. */
  readonly priorityMap?: ReadonlyMap<string, Priority>
  /** The list of the cluster's nodes, for formats that have one. */
  readonly nodesFile?: string
  /** What stays free on each GPU. Default DEFAULT_RESERVE_MIB. */
  readonly reserveMib?: Mib
}

/** An assumption of our own. */
export const DEFAULT_TASK_VRAM_MIB: Mib = 8192

/** Specification 8. */
export const DEFAULT_RESERVE_MIB: Mib = 2048
