/**
 * The trace format: `*.trace.jsonl`, gzip allowed. A header line, then one task a line, in the order of
 * arrival (`at` never falls; tasks with the same `at` are submitted in the order of their lines). All times
 * are whole milliseconds, all VRAM is MiB for each GPU. The keys here are the keys of the file. Source:
 * design "The simulator", section Trace.
 */
import type { DurationMs, GpuMode, Mib, NoSwap, Priority } from '../../protocol/units.ts'

export const TRACE_VERSION = 1

/**
 * What a task does with its GPUs, with GPU work kept apart from idle residence. GPU work is counted in milliseconds that it takes on an
 * idle GPU (on each of the task's GPUs alike); where GPUs are shared or the task is swapped out, it takes longer.
 * - `duration`: GPU work of `ms` (1 or more) without a pause. Ends when it is done.
 * - `phases`: for each [busyMs, idleMs] in turn, GPU work of busyMs, then idleMs of wall time without any. Either may be 0, not all of
 *   them. Ends after the last. Idle time passes whether or not the task is resident.
 * - `bursts`: requests that arrive at fixed offsets (wall time since the task's first start, never falling), each GPU work of busyMs (1 or more).
 *   Work queues up first in, first out; offsets do not move when it does. Ends when all of it is done and stayMs of wall time have
 *   passed since the first start. `at` may be empty when stayMs is 1 or more: a task that only holds VRAM.
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

/** One task. In the file, whatever has a default may be left out; a reader always gives all fields. */
export interface TraceTask {
  /** 1..256 characters, unique in the trace. */
  readonly id: string
  /** When it is submitted, since the start of the trace. */
  readonly at: DurationMs
  /** 1..1024, all on one node. */
  readonly gpus: number
  /**
   * For each GPU. 1 or more; 0 (or left out) only when `gpu_mode` is exclusive, and then all that may be
   * resident there.
   */
  readonly vram_mib: Mib
  /** Default `shared`. */
  readonly gpu_mode: GpuMode
  /** Default 2. */
  readonly priority: Priority
  /** Default 0. */
  readonly noswap: NoSwap
  /** Groups it targets, any of which will do. Default none: the common pool. */
  readonly groups: readonly string[]
  /** Default null. */
  readonly owner: string | null
  readonly work: Work
  /**
   * What it really uses as it grows: from `t` (wall time since its first start, rising strictly) on, `mib` in
   * all on each GPU (rising strictly, below or above `vram_mib`), and nothing before. Default []: `vram_mib`
   * at start.
   */
  readonly alloc: ReadonlyArray<readonly [t: DurationMs, mib: Mib]>
  /** When its owner cancels it, on the axis of `at`, `at` or later. Default null: never. */
  readonly cancel_at: DurationMs | null
}

/** Where the rows came from. */
export interface TraceSource {
  /** Name of the file, without its folder. */
  readonly file: string
  /** Of its content, uncompressed. */
  readonly sha256: string
  /** SPDX id, or null when unknown. */
  readonly licence: string | null
  readonly origin: string | null
}

/** How the rows became tasks. */
export interface TraceImporter {
  readonly format: string
  /** The options given, for a person who wants to repeat it. */
  readonly options: Readonly<Record<string, unknown>>
  /** Fields of tasks that the source does not know and that were made up: `activity`, `vram_mib`. */
  readonly synthetic: readonly string[]
  /** Rows that carried a constraint which Headroom has no word for, by constraint. */
  readonly ignored: Readonly<Record<string, number>>
  /** Rows that were kept with a corrected value, by correction. */
  readonly adjusted: Readonly<Record<string, number>>
}

export interface TraceHeader {
  /** Its name. */
  readonly trace: string
  readonly version: typeof TRACE_VERSION
  readonly t_unit: 'ms'
  /** Null for a trace that no file was imported for. */
  readonly source: TraceSource | null
  readonly importer: TraceImporter | null
  /**
   * Data rows read from the source; 0 without a source. If a row is a task: the kept tasks plus all dropped
   * rows.
   */
  readonly rows: number
  /** Rows not kept, by reason. */
  readonly dropped: Readonly<Record<string, number>>
}
