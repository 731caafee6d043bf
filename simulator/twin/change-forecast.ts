/**
 * Forecasts a change of the settings: runs the live state with and without it, in pairs with the same draws
 * (common random numbers), so that the difference of a pair is caused by the change.
 */
import type {
  ChangeForecast,
  ClusterSnapshot,
  ForecastBand,
  MetricChange,
  NoForecast,
  RecentPast,
  SettingsChange,
  TwinMetric,
} from '../../controller/ports/twin.ts'
import { affordableHorizon } from './budget.ts'
import type { Budget } from './budget.ts'
import { drawFuture, runFork } from './fork.ts'
import type { ForkResult } from './fork.ts'
import type { ForkFigures } from './fork-course.ts'
import { quantileOf, risingOf } from './quantile.ts'
import { TOO_LARGE } from './start-forecast.ts'
import { isModel, workloadModelOf } from './workload-model.ts'

const LEAST_PAIRS = 3
/** With fewer pairs no direction is reported. */
const LEAST_PAIRS_FOR_A_SIGN = 5
/** Maximum number of points of a course, and their minimum interval. */
const MAX_INTERVALS = 24
const LEAST_INTERVAL_MS = 60_000
/** Number of pairs that must agree. */

/** External names of the metrics. */
const FIGURE_OF: Readonly<Record<TwinMetric, keyof ForkFigures>> = {
  queue_wait_s: 'queueWaitS',
  starvation_percent: 'starvationPercent',
  utilization_percent: 'utilizationPercent',
  swap_outs_per_hour: 'swapOutsPerHour',
}

export async function forecastChange(
  image: ClusterSnapshot,
  past: RecentPast,
  change: SettingsChange,
  budget: Budget,
): Promise<ChangeForecast | NoForecast> {
  const model = workloadModelOf(image, past)
  if (!isModel(model)) return model
  const horizonMs = await affordableHorizon(image, model, budget)
  if (horizonMs === null) return TOO_LARGE
  const intervals = Math.min(MAX_INTERVALS, Math.floor(horizonMs / LEAST_INTERVAL_MS))
  const pairs: (readonly [before: ForkResult, after: ForkResult])[] = []
  while (pairs.length < budget.maxRuns && (pairs.length < LEAST_PAIRS || budget.spent() < 1)) {
    const draw = drawFuture(image, model, pairs.length + 1, horizonMs)
    const before = await runFork(draw, { untilMs: horizonMs, intervals })
    const after = await runFork(draw, { untilMs: horizonMs, intervals, change })
    pairs.push([before, after])
  }
  return {
    at: image.at,
    horizonMs,
    runs: pairs.length,
    assumes: model.assumes,
    metrics: mapMetrics((metric) =>
      changeOf(
        pairs.map(([before, after]) => [figureOf(before.figures, metric), figureOf(after.figures, metric)]),
      ),
    ),
    courses: {
      endsMs: Array.from({ length: intervals }, (_, part) =>
        Math.round((horizonMs * (part + 1)) / intervals),
      ),
      metrics: mapMetrics((metric) => ({
        before: bandOver(
          pairs.map(([{ course }]) => course),
          metric,
          intervals,
        ),
        after: bandOver(
          pairs.map(([, { course }]) => course),
          metric,
          intervals,
        ),
      })),
    },
  }
}

/** Interval by interval, over the runs with a value. */
function bandOver(
  courses: readonly (readonly ForkFigures[])[],
  metric: TwinMetric,
  intervals: number,
): ForecastBand {
  const rising = Array.from({ length: intervals }, (_, at) =>
    risingOf(
      courses.flatMap((course) => {
        const figures = course[at]
        const value = figures === undefined ? null : figureOf(figures, metric)
        return value === null ? [] : [value]
      }),
    ),
  )
  const column = (percent: number) => rising.map((values) => quantileOf(values, percent))
  return { p10: column(10), p50: column(50), p90: column(90) }
}

export function figureOf(figures: ForkFigures, metric: TwinMetric): number | null {
  return figures[FIGURE_OF[metric]]
}

export function mapMetrics<T>(of: (metric: TwinMetric) => T): Readonly<Record<TwinMetric, T>> {
  return {
    queue_wait_s: of('queue_wait_s'),
    starvation_percent: of('starvation_percent'),
    utilization_percent: of('utilization_percent'),
    swap_outs_per_hour: of('swap_outs_per_hour'),
  }
}

/** Number of pairs with both values; null: no pair. */
export function changeOf(
  pairs: readonly (readonly [before: number | null, after: number | null])[],
): MetricChange | null {
  const measured = pairs.filter(
    (pair): pair is readonly [number, number] => pair[0] !== null && pair[1] !== null,
  )
  if (measured.length === 0) return null
  const at = (values: readonly number[], percent: number): number =>
    quantileOf(risingOf(values), percent) ?? 0
  const differences = measured.map(([before, after]) => after - before)
  const median = at(differences, 50)
  const difference = { p10: at(differences, 10), p50: median, p90: at(differences, 90) }
  const agreement =
    differences.filter((each) => Math.sign(each) === Math.sign(median)).length / differences.length
  return {
    before: at(
      measured.map(([before]) => before),
      50,
    ),
    after: at(
      measured.map(([, after]) => after),
      50,
    ),
    difference,
    agreement,
    verdict: verdictOf(differences, difference),
  }
}

/** A direction is reported only if the band of the differences excludes zero. */
function verdictOf(
  differences: readonly number[],
  { p10, p90 }: MetricChange['difference'],
): MetricChange['verdict'] {
  if (differences.every((each) => each === 0)) return 'stays'
  if (differences.length < LEAST_PAIRS_FOR_A_SIGN || (p10 <= 0 && p90 >= 0)) return 'unclear'
  return p10 > 0 ? 'rises' : 'falls'
}
