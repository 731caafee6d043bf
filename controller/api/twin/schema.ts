/** Forecasts of the live state by the twin, and their accuracy (docs/twin.md). */
import { Type, type Static } from 'typebox'
import { SWAP_METHODS } from '../../../protocol/units.ts'
import {
  closed,
  count,
  instant,
  instantOrNull,
  list,
  numberOrNull,
  objectOrNull,
  oneOf,
  textOrNull,
} from '../http/fields-schema.ts'

const BASIS = {
  at: instant('Time of the live state from which the simulation starts'),
  horizon_seconds: count('Simulated time'),
  runs: count('Number of runs, each with a different sample of the unknown values'),
  assumes: list(Type.String(), { description: 'Assumptions in words' }),
}

const MetricChangeSchema = Type.Object({
  before: Type.Number({ description: 'Median over the runs with the current settings' }),
  after: Type.Number({ description: 'Median over the runs with the changed settings' }),
  difference: Type.Object({
    p10: Type.Number({ description: '10th percentile of the differences of paired runs' }),
    p50: Type.Number(),
    p90: Type.Number(),
  }),
  agreement: Type.Number({
    description: 'Share of the pairs whose difference has the same sign as the median difference',
  }),
  verdict: oneOf(['rises', 'falls', 'stays', 'unclear'], {
    description: 'unclear: fewer than 5 pairs, or zero is within difference.p10 to difference.p90',
  }),
})

const metricChange = (what: string) => objectOrNull(MetricChangeSchema, `${what}; null: no measurement`)

const column = (description: string) =>
  list(Type.Unsafe<number | null>({ type: ['number', 'null'] }), {
    description: `${description}, one for each interval; null: no measurement`,
  })
const BandSchema = Type.Object({
  p10: column('10th percentile over the runs'),
  p50: column('Median'),
  p90: column('90th percentile'),
})
const courseOf = (what: string) =>
  Type.Object({ before: BandSchema, after: BandSchema }, { description: what })

const CoursesSchema = Type.Object(
  {
    ends_seconds: list(count(), {
      description:
        'Ends of the intervals, in seconds after `at`; the first begins at 0, the last ends at the horizon',
    }),
    queue_wait_s: courseOf(
      'Mean wait of the tasks that waited for their first start in the interval, including unfinished waits',
    ),
    starvation_percent: courseOf('Starvation in the interval'),
    utilization_percent: courseOf('Utilization in the interval'),
    swap_outs_per_hour: courseOf('Swap-outs per hour in the interval'),
  },
  { description: 'Values of the metrics over the horizon' },
)

export const ChangeForecastSchema = Type.Object({
  ...BASIS,
  queue_wait_s: metricChange('Mean wait for the first start'),
  starvation_percent: metricChange('Share of demanded GPU time that is not served'),
  utilization_percent: metricChange('Share of GPU time with at least one running kernel'),
  swap_outs_per_hour: metricChange('Swap-outs completed'),
  courses: CoursesSchema,
  sentence: Type.String({ description: 'Human-readable explanation' }),
})
export type ChangeForecastBody = Static<typeof ChangeForecastSchema>

export const StartForecastSchema = Type.Object({
  ...BASIS,
  starts_p50: instantOrNull(
    'Time by which the task has started in half of the runs; null: not within the horizon',
  ),
  starts_p90: instantOrNull(
    'Time by which the task has started in 90% of the runs; null: not within the horizon',
  ),
  not_within_horizon: Type.Number({
    description: 'Share of the runs in which the task did not start, 0 to 1',
  }),
  sentence: Type.String({ description: 'Human-readable explanation' }),
})
export type StartForecastBody = Static<typeof StartForecastSchema>

export const ForecastQuerySchema = closed({
  forecast: Type.Optional(
    oneOf(['none', 'latest', 'wait'], {
      default: 'latest',
      description:
        'latest: return the last forecast and start a new one; wait: wait a few seconds for a new one',
    }),
  ),
})

const PointSchema = Type.Object({
  p10: Type.Number({ description: '10th percentile, predicted before the interval' }),
  p50: Type.Number(),
  p90: Type.Number(),
  actual: Type.Number({ description: 'Measured value' }),
  score: Type.Number({
    description:
      'Distance between the measured value and p50, as a multiple of the width of the band from p10 to p90',
  }),
})
const point = objectOrNull(PointSchema, 'null: no measurement')

const EntrySchema = Type.Object({
  from: instant('Start of the interval'),
  to: instant('End of the interval'),
  queue_wait_s: point,
  starvation_percent: point,
  utilization_percent: point,
  swap_outs_per_hour: point,
})

const ScoresSchema = Type.Object({
  queue_wait_s: numberOrNull('Mean score over the last hour; null: no comparison'),
  starvation_percent: numberOrNull('The same'),
  utilization_percent: numberOrNull('The same'),
  swap_outs_per_hour: numberOrNull('The same'),
})

const CopiesSchema = Type.Object(
  {
    fixed_ms: count('Time before the first byte moves, milliseconds'),
    mib_per_s: count('Rate of the copy, MiB per second'),
    observed: count('Number of recent copies that the fit is based on'),
    error_percent: numberOrNull('Median deviation of those copies from the fit; null: none was observed'),
    profile_error_percent: numberOrNull(
      'The same for the default profile, which applies without observations; null: none was observed',
    ),
  },
  { description: 'time = fixed_ms + size / mib_per_s' },
)

const SpeedsSchema = Type.Object({
  node_id: Type.String(),
  methods: list(
    Type.Object({
      method: oneOf(SWAP_METHODS, { description: 'Swap method of the tasks' }),
      out: CopiesSchema,
      in: CopiesSchema,
      residual_mib: count('Median VRAM that a swapped-out task keeps on each of its GPUs, MiB'),
    }),
    { description: 'Swap methods with at least one observed copy' },
  ),
  starts: Type.Object({
    observed: count('Number of recent starts that the median is based on'),
    ms: count('Median time from the start command until the task runs, milliseconds; 0 below 3 starts'),
  }),
  latest_at: instant('Time of the latest observation'),
})

export const TwinSchema = Type.Object({
  state: oneOf(['unknown', 'steady', 'drifting'], {
    description:
      'drifting: a score is above the threshold, and no forecasts are available; unknown: too few ' +
      'comparisons',
  }),
  scores: ScoresSchema,
  threshold: Type.Number(),
  unavailable_because: textOrNull('Why no forecast is available'),
  history: list(EntrySchema, { description: 'Oldest first; covers at most one day' }),
  speeds: list(SpeedsSchema, {
    description:
      'How fast nodes swap and start tasks, learned since the controller started; the 1000 nodes with the ' +
      'latest observations. Forecasts and snapshots use the speeds of all nodes',
  }),
})
export type TwinBody = Static<typeof TwinSchema>
