/** The metrics of a run: `assert.final`, sweeps and results name them by these paths. */

export interface Distribution {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export interface Metrics {
  /** Submission to completion, of completed tasks. */
  readonly jct_s: Distribution | null
  /** Submission to first start, of tasks that started. */
  readonly queue_wait_s: Distribution | null
  /** jct ÷ the time alone on an idle GPU. */
  readonly slowdown: Distribution | null
  /**
   * From the time at which a swapped-out task wants the GPU until it is resident; absent if no task returned
   * so.
   */
  readonly wake_s?: Distribution
  /** Means of the parts of `wake_s`: the wait for a victim, the swap-out of the victims, the swap-in. */
  readonly wake_parts_s?: { readonly wait: number; readonly swap_out: number; readonly swap_in: number }
  /** First submission to last end. */
  readonly makespan_s: number | null
  readonly utilization_percent: number | null
  readonly starvation_percent: {
    readonly total: number
    readonly queue: number
    readonly swap: number
    readonly compute: number
  }
  /**
   * Present only if servers cannot signal that a task wants the GPU: time for which swapped-out tasks waited
   * with work without a signal. It is not part of the demand.
   */
  readonly unsignalled_wait_percent?: number
  /** Former name of `unsignalled_wait_percent`; removed in 0.2. */
  readonly unheard_percent?: number
  /** Swap-outs completed. */
  readonly swaps_per_hour: number
  /** Bytes moved, out and in. */
  readonly swapped_gib_per_hour: number
  /** Null when nothing was ever swapped out by decision. */
  readonly swap_jain: number | null
  readonly tasks: {
    readonly submitted: number
    readonly completed: number
    readonly failed: number
    readonly unfinished: number
    /**
     * Unfinished tasks that fit on no node, even when it is empty; absent if 0. No other metric counts them.
     */
    readonly fit_nowhere?: number
  }
}

type Shape<T> = T extends number | null ? true : { readonly [K in keyof T]-?: Shape<NonNullable<T[K]>> }

const DISTRIBUTION: Shape<Distribution> = { mean: true, p50: true, p95: true, p99: true }

/** Every number of a result. The compiler compares it with `Metrics`. */
const METRICS: Shape<Metrics> = {
  jct_s: DISTRIBUTION,
  queue_wait_s: DISTRIBUTION,
  slowdown: DISTRIBUTION,
  wake_s: DISTRIBUTION,
  wake_parts_s: { wait: true, swap_out: true, swap_in: true },
  makespan_s: true,
  utilization_percent: true,
  starvation_percent: { total: true, queue: true, swap: true, compute: true },
  unsignalled_wait_percent: true,
  unheard_percent: true,
  swaps_per_hour: true,
  swapped_gib_per_hour: true,
  swap_jain: true,
  tasks: { submitted: true, completed: true, failed: true, unfinished: true, fit_nowhere: true },
}

export const METRIC_PATHS: readonly string[] = pathsIn(METRICS, '')

function pathsIn(shape: object, prefix: string): string[] {
  return Object.entries(shape).flatMap(([key, inside]) =>
    inside === true ? [prefix + key] : pathsIn(inside as object, `${prefix}${key}.`),
  )
}
