/** The figures of a run, as `result.json` and `--json` have them (docs/simulation-model.md defines each). */
import type { DurationMs } from '../../protocol/units.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import type { FaultCounts } from './fault-tally.ts'
import type { Collector } from './collector.ts'
import type { Distribution } from './samples.ts'

export interface Metrics {
  /** Submission to completion, of completed tasks. */
  readonly jct_s: Distribution | null
  /** Submission to first start, of tasks that started. */
  readonly queue_wait_s: Distribution | null
  /** jct ÷ the time alone on an idle GPU. */
  readonly slowdown: Distribution | null
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
   * Only where servers cannot signal that a task wants the GPU: what swapped-out tasks waited with work that
   * nothing told of, beside demand.
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
     * Of the unfinished, only where there are some: they wait, and no node takes them even when it is empty.
     * No other figure counts them.
     */
    readonly fit_nowhere?: number
  }
}

export interface RunResult {
  readonly digest: string | null
  readonly scenario_sha256: string | null
  readonly trace_sha256: string | null
  readonly seed: number
  readonly version: string
  readonly virtual_s: number
  readonly metrics: Metrics
  /** Of a scenario with faults: how often each kind that came up began, and how often it did something. */
  readonly faults?: Partial<FaultCounts>
}

export interface MetricsInput {
  readonly collector: Collector
  readonly counters: Counters
  readonly windowMs: DurationMs
  readonly gpus: number
  readonly swaps: { readonly swapOuts: number; readonly swappedOutMib: number; readonly swappedInMib: number }
  readonly jain: number | null
  /** GPU time; null where every server signals wants. */
  readonly unsignalledWaitMs: DurationMs | null
  readonly fitNowhere: number
}

export function metricsOf({
  collector,
  counters,
  windowMs,
  gpus,
  swaps,
  jain,
  unsignalledWaitMs,
  fitNowhere,
}: MetricsInput): Metrics {
  const hours = windowMs / 3_600_000
  const perHour = (amount: number) => (hours > 0 ? amount / hours : 0)
  const { firstSubmittedAt, lastFinishedAt, ended } = collector
  return {
    jct_s: collector.jctMs.distribution(1000),
    queue_wait_s: collector.queueWaitMs.distribution(1000),
    slowdown: collector.slowdown.distribution(1),
    makespan_s:
      firstSubmittedAt === null || lastFinishedAt === null
        ? null
        : (lastFinishedAt - firstSubmittedAt) / 1000,
    utilization_percent: utilizationPercent(counters, windowMs, gpus),
    starvation_percent: starvationPercent(counters),
    ...(unsignalledWaitMs === null
      ? {}
      : underBothNames(unsignalledWaitPercent(unsignalledWaitMs, counters))),
    swaps_per_hour: perHour(swaps.swapOuts),
    swapped_gib_per_hour: perHour((swaps.swappedOutMib + swaps.swappedInMib) / 1024),
    swap_jain: jain,
    tasks: {
      submitted: collector.submitted,
      completed: ended['completed'] ?? 0,
      failed: (ended['failed'] ?? 0) + (ended['lost'] ?? 0),
      unfinished: collector.unfinished,
      ...(fitNowhere === 0 ? {} : { fit_nowhere: fitNowhere }),
    },
  }
}

/** The figure under its present and its former name. */
export function underBothNames<Figure>(figure: Figure) {
  return { unsignalled_wait_percent: figure, unheard_percent: figure }
}

/** Of what tasks wanted altogether, heard of or not. */
function unsignalledWaitPercent(unsignalledWaitMs: DurationMs, { demand }: Counters): number {
  const unsignalledWaitUs = 1000 * unsignalledWaitMs
  return unsignalledWaitUs === 0 ? 0 : (100 * unsignalledWaitUs) / (demand + unsignalledWaitUs)
}
