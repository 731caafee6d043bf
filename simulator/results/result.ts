/** The metrics of a run, as in `result.json` and `--json` (docs/simulation-model.md defines each). */
import type { DurationMs } from '../../protocol/units.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import type { FaultCounts } from './fault-tally.ts'
import type { Collector } from './collector.ts'
import type { Metrics } from '../scenario/metrics.ts'

export interface RunResult {
  readonly digest: string | null
  readonly scenario_sha256: string | null
  readonly trace_sha256: string | null
  readonly seed: number
  readonly version: string
  readonly virtual_s: number
  readonly metrics: Metrics
  /** For a scenario with faults: how often each kind began, and how often it had an effect. */
  readonly faults?: Partial<FaultCounts>
}

export interface MetricsInput {
  readonly collector: Collector
  readonly counters: Counters
  readonly windowMs: DurationMs
  readonly gpus: number
  readonly swaps: { readonly swapOuts: number; readonly swappedOutMib: number; readonly swappedInMib: number }
  readonly jain: number | null
  /** GPU time; null if every server signals wants. */
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
    ...wakesOf(collector),
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

function wakesOf({ wakeMs, wakeParts }: Collector): Pick<Metrics, 'wake_s' | 'wake_parts_s'> {
  const wake_s = wakeMs.distribution(1000)
  if (wake_s === null) return {}
  const mean = (sumMs: DurationMs) => sumMs / wakeMs.count / 1000
  const { waitMs, swapOutMs, swapInMs } = wakeParts
  return {
    wake_s,
    wake_parts_s: { wait: mean(waitMs), swap_out: mean(swapOutMs), swap_in: mean(swapInMs) },
  }
}

/** The metric under its current and its former name. */
export function underBothNames<Figure>(figure: Figure) {
  return { unsignalled_wait_percent: figure, unheard_percent: figure }
}

/** Percent of everything that tasks wanted, signalled or not. */
function unsignalledWaitPercent(unsignalledWaitMs: DurationMs, { demand }: Counters): number {
  const unsignalledWaitUs = 1000 * unsignalledWaitMs
  return unsignalledWaitUs === 0 ? 0 : (100 * unsignalledWaitUs) / (demand + unsignalledWaitUs)
}
