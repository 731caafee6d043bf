/**
 * The accuracy of the twin: its prediction for an interval, made before the interval, compared with the
 * actual values (docs/twin.md, "Drift"). Pure; the caller runs and measures.
 */
import { TWIN_METRICS } from '../../controller/ports/twin.ts'
import type {
  ClusterSnapshot,
  DriftEntry,
  DriftPoint,
  DriftReport,
  NoForecast,
  RecentPast,
  TwinMetric,
} from '../../controller/ports/twin.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { figureOf, mapMetrics } from './change-forecast.ts'
import type { Budget } from './budget.ts'
import { drawFuture, runFork } from './fork.ts'
import type { ForkFigures } from './fork-course.ts'
import { quantileOf, risingOf } from './quantile.ts'
import { TOO_LARGE } from './start-forecast.ts'
import { isModel, workloadModelOf } from './workload-model.ts'

/** Intervals of an hour, and a day of history. */
export const DRIFT_INTERVAL_MS: DurationMs = 600_000
export const MAX_DRIFT_HISTORY = 144
/** The score is a mean over this number of latest intervals. */
const DRIFT_WINDOW = 6
/** With fewer intervals there is no score. */
const LEAST_COMPARED = 3
/**
 * Limit of the score: on average, actual values are as far from the median as the band is wide, so
 * predictions are useless.
 */
const DRIFT_THRESHOLD = 1
const RUNS = 9

/**
 * Minimum width of a band: a smaller difference is not a drift. For queue wait and swaps also a fifth of the
 * actual value.
 */
const LEAST_WIDTH: Readonly<Record<TwinMetric, number>> = {
  queue_wait_s: 30,
  starvation_percent: 5,
  utilization_percent: 5,
  swap_outs_per_hour: 6,
}
const LEAST_RELATIVE_WIDTH: Readonly<Record<TwinMetric, number>> = {
  queue_wait_s: 0.2,
  starvation_percent: 0,
  utilization_percent: 0,
  swap_outs_per_hour: 0.2,
}

/** Predictions for the interval that begins with the snapshot. */
export interface IntervalPrediction {
  readonly from: Instant
  readonly to: Instant
  readonly metrics: Readonly<Record<TwinMetric, readonly number[]>>
}

/** Runs one interval with several draws; refuses what takes longer than its time limit. */
export async function predictInterval(
  image: ClusterSnapshot,
  past: RecentPast,
  budget: Budget,
): Promise<IntervalPrediction | NoForecast> {
  const model = workloadModelOf(image, past)
  if (!isModel(model)) return model
  const runs: ForkFigures[] = []
  while (runs.length < RUNS) {
    const draw = drawFuture(image, model, runs.length + 1, DRIFT_INTERVAL_MS)
    const { figures } = await runFork(draw, {
      untilMs: DRIFT_INTERVAL_MS,
      isGivenUp: () => budget.spent() > 1,
    })
    if (budget.spent() > 1) return TOO_LARGE
    runs.push(figures)
  }
  return {
    from: image.at,
    to: image.at + DRIFT_INTERVAL_MS,
    metrics: mapMetrics((metric) => runs.flatMap((figures) => figureOf(figures, metric) ?? [])),
  }
}

/** Actual values of the same interval. */
export function compare(
  predicted: IntervalPrediction,
  actual: Readonly<Record<TwinMetric, number | null>>,
): DriftEntry {
  return {
    from: predicted.from,
    to: predicted.to,
    metrics: mapMetrics((metric) => pointOf(metric, predicted.metrics[metric], actual[metric])),
  }
}

function pointOf(metric: TwinMetric, predicted: readonly number[], actual: number | null): DriftPoint | null {
  const rising = risingOf(predicted)
  const [p10, p50, p90] = [quantileOf(rising, 10), quantileOf(rising, 50), quantileOf(rising, 90)]
  if (p10 === null || p50 === null || p90 === null || actual === null) return null
  const width = Math.max(p90 - p10, LEAST_WIDTH[metric], LEAST_RELATIVE_WIDTH[metric] * actual)
  return { p10, p50, p90, actual, score: Math.abs(actual - p50) / width }
}

/** Keeps the newest. */
export function withEntry(history: readonly DriftEntry[], entry: DriftEntry): readonly DriftEntry[] {
  return [...history, entry].slice(-MAX_DRIFT_HISTORY)
}

export function driftReport(history: readonly DriftEntry[], because: NoForecast | null): DriftReport {
  const latest = history.slice(-DRIFT_WINDOW)
  const scores = mapMetrics((metric) => {
    const points = latest.flatMap(({ metrics }) => metrics[metric] ?? [])
    return points.length === 0 ? null : points.reduce((sum, { score }) => sum + score, 0) / points.length
  })
  const isDrifting = TWIN_METRICS.some((metric) => (scores[metric] ?? 0) > DRIFT_THRESHOLD)
  const state = latest.length < LEAST_COMPARED ? 'unknown' : isDrifting ? 'drifting' : 'steady'
  return { state, scores, threshold: DRIFT_THRESHOLD, because, history }
}

/** Reason for withholding advice, as text; null: none. */
export function withheldBecause({ state, scores, threshold }: DriftReport): NoForecast | null {
  if (state !== 'drifting') return null
  const far = TWIN_METRICS.filter((metric) => (scores[metric] ?? 0) > threshold)
  const words = far.map((metric) => `${metric} ${(scores[metric] ?? 0).toFixed(1)}`).join(', ')
  const detail =
    'the twin drifts: actual values of the last intervals were further from its predictions ' +
    `than its band is wide (${words}; ${threshold} is the limit)`
  return { reason: 'DRIFT', detail }
}
