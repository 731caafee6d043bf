/** A job of the twin's process: continues the live state in simulation, within a time limit. */
import { performance } from 'node:perf_hooks'
import type {
  ChangeForecast,
  ClusterSnapshot,
  NoForecast,
  RecentPast,
  SettingsChange,
  StartForecast,
} from '../../controller/ports/twin.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Budget } from '../../simulator/twin/budget.ts'
import { forecastChange } from '../../simulator/twin/change-forecast.ts'
import { predictInterval } from '../../simulator/twin/drift.ts'
import type { IntervalPrediction } from '../../simulator/twin/drift.ts'
import {
  forecastLimits,
  type LimitsChange,
  type LimitsForecast,
} from '../../simulator/twin/limits-forecast.ts'
import { forecastStarts } from '../../simulator/twin/start-forecast.ts'

interface ForecastInput {
  readonly image: ClusterSnapshot
  readonly past: RecentPast
  readonly withinMs: DurationMs
  readonly horizonMs: DurationMs
  readonly maxRuns: number
}

export type TwinJob =
  | (ForecastInput & { readonly kind: 'starts' })
  | (ForecastInput & { readonly kind: 'change'; readonly change: SettingsChange })
  | (ForecastInput & { readonly kind: 'forecast' })
  | LimitsJob

export type LimitsJob = ForecastInput & { readonly kind: 'limits'; readonly change: LimitsChange }

export type TwinAnswer = StartForecast | ChangeForecast | IntervalPrediction | LimitsForecast | NoForecast

export function twinJob(job: TwinJob): Promise<TwinAnswer> {
  const budget = budgetOf(job)
  switch (job.kind) {
    case 'starts':
      return forecastStarts(job.image, job.past, budget)
    case 'change':
      return forecastChange(job.image, job.past, job.change, budget)
    case 'limits':
      return forecastLimits(job.image, job.past, job.change, budget)
    case 'forecast':
      return predictInterval(job.image, job.past, budget)
  }
}

function budgetOf({ withinMs, horizonMs, maxRuns }: ForecastInput): Budget {
  const from = performance.now()
  return { spent: () => (performance.now() - from) / withinMs, horizonMs, maxRuns }
}
