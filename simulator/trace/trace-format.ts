/**
 * The trace format: `*.trace.jsonl`, gzip allowed. A header line, then one task per line, in the order of
 * arrival (`at` never decreases; tasks with the same `at` are submitted in the order of their lines). All
 * times are whole milliseconds, VRAM is MiB per GPU. The keys here are the keys of the file. Source: design
 * "The simulator", section Trace.
 */
import type { DurationMs, GpuMode, Mib, NoSwap, Priority } from '../../protocol/units.ts'

export const TRACE_VERSION = 1

/**
 * The work of a task, with GPU work separate from idle time. GPU work is the number of milliseconds that it
 * takes on an idle GPU (on each of the task's GPUs alike); on shared GPUs, or while the task is swapped out,
 * it takes longer.
 * - `duration`: GPU work of `ms` (1 or more) without a pause. Ends when it is done.
 * - `phases`: for each [busyMs, idleMs] in order, GPU work of busyMs, then an idle wall time of idleMs.
 *   Either may be 0, but not all of them. Ends after the last. Idle time passes whether or not the task is
 *   resident.
 * - `bursts`: requests that arrive at fixed offsets (wall time since the task's first start, never
 *   decreasing), each with GPU work of busyMs (1 or more). Work queues up first in, first out, without moving
 *   the offsets. Ends when all of it is done and stayMs of wall time have passed since the first start. `at`
 *   may be empty if stayMs is 1 or more: a task that only uses VRAM.
 */
export type Work =
  | { readonly kind: 'duration'; readonly ms: DurationMs }
  | {
      readonly kind: 'phases'
      readonly phases: ReadonlyArray<readonly [busyMs: DurationMs, idleMs: DurationMs]>
    }
  | {
      readonly kind: 'bursts'
      readonly at: ReadonlyArray<readonly [offsetMs: DurationMs, busyMs: DurationMs]>
      readonly stayMs: DurationMs
    }

/** One task. A file may omit fields with a default; a reader always returns all fields. */
export interface TraceTask {
  /** 1..256 characters, unique in the trace. */
  readonly id: string
  /** Time of submission, since the start of the trace. */
  readonly at: DurationMs
  /** 1..1024, all on one node. */
  readonly gpus: number
  /**
   * Per GPU. 1 or more; 0 (or absent) only if `gpu_mode` is exclusive: everything that may be resident there.
   */
  readonly vram_mib: Mib
  /** Default `shared`. */
  readonly gpu_mode: GpuMode
  /** Default 2. */
  readonly priority: Priority
  /** Default 0. */
  readonly noswap: NoSwap
  /** Target groups, any of which suffices. Default none: the common pool. */
  readonly groups: readonly string[]
  /** Default null. */
  readonly owner: string | null
  readonly work: Work
  /**
   * Growth: from `t` on (wall time since the first start, strictly increasing) the task uses `mib` in total
   * on each GPU (strictly increasing, below or above `vram_mib`). Default []: `vram_mib` from the start.
   */
  readonly alloc: ReadonlyArray<readonly [t: DurationMs, mib: Mib]>
  /** Time at which the owner cancels it, on the axis of `at`, `at` or later. Default null: never. */
  readonly cancel_at: DurationMs | null
}

/** Origin of the rows. */
export interface TraceSource {
  /** Name of the file, without its folder. */
  readonly file: string
  /** SHA-256 of the uncompressed content. */
  readonly sha256: string
  /** SPDX id, or null when unknown. */
  readonly licence: string | null
  readonly origin: string | null
}

/** How the rows were converted to tasks. */
export interface TraceImporter {
  readonly format: string
  /** The given options, for a person who repeats the import. */
  readonly options: Readonly<Record<string, unknown>>
  /** Fields that the source lacks and that were made up: `activity`, `vram_mib`. */
  readonly synthetic: readonly string[]
  /** Rows with a constraint that Headroom does not support, by constraint. */
  readonly ignored: Readonly<Record<string, number>>
  /** Rows that were kept with a corrected value, by correction. */
  readonly adjusted: Readonly<Record<string, number>>
}

export interface TraceHeader {
  /** Name of the trace. */
  readonly trace: string
  readonly version: typeof TRACE_VERSION
  readonly t_unit: 'ms'
  /** Null for a trace without an import. */
  readonly source: TraceSource | null
  readonly importer: TraceImporter | null
  /**
   * Data rows read from the source; 0 without a source. If a row is a task: the kept tasks plus all dropped
   * rows.
   */
  readonly rows: number
  /** Dropped rows, by reason. */
  readonly dropped: Readonly<Record<string, number>>
}
