/** What the twin says: forecasts of the live state, and how well it has foretold (docs/twin.md). */
import { Type, type Static } from 'typebox'
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
} from './fields.ts'

const BASIS = {
  at: instant('Of the live state that was run on'),
  horizon_seconds: count('How far it was run on'),
  runs: count('Each with another draw of what is not known'),
  assumes: list(Type.String(), { description: 'In words' }),
}

const MetricChangeSchema = Type.Object({
  before: Type.Number({ description: 'Median over the runs, settings as they are' }),
  after: Type.Number({ description: 'Median over the runs, settings as they would be' }),
  difference: Type.Object({
    p10: Type.Number({ description: 'Of the differences of pairs that share every draw' }),
    p50: Type.Number(),
    p90: Type.Number(),
  }),
  agreement: Type.Number({ description: 'Share of the pairs whose difference has the sign of the median' }),
  verdict: oneOf(['rises', 'falls', 'stays', 'unclear'], {
    description: 'unclear: fewer than 5 pairs, or zero is within difference.p10 to difference.p90',
  }),
})

const metricChange = (what: string) => objectOrNull(MetricChangeSchema, `${what}; null: nothing was measured`)

const column = (description: string) =>
  list(Type.Unsafe<number | null>({ type: ['number', 'null'] }), {
    description: `${description}, one for each interval; null: nothing was measured`,
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
      'Mean over those that waited for their first start in the interval: until it, or so far',
    ),
    starvation_percent: courseOf('Of the interval'),
    utilization_percent: courseOf('Of the interval'),
    swap_outs_per_hour: courseOf('Of the interval'),
  },
  { description: 'How the figures go over the horizon' },
)

export const ChangeForecastSchema = Type.Object({
  ...BASIS,
  queue_wait_s: metricChange('Mean wait for the first start, of those that waited'),
  starvation_percent: metricChange('Share of wanted GPU time not given'),
  utilization_percent: metricChange('Share of GPU time with work'),
  swap_outs_per_hour: metricChange('Swap-outs completed'),
  courses: CoursesSchema,
  sentence: Type.String({ description: 'For people' }),
})
export type ChangeForecastBody = Static<typeof ChangeForecastSchema>

export const StartForecastSchema = Type.Object({
  ...BASIS,
  starts_p50: instantOrNull('It has started by then in half of the runs; null: not within the horizon'),
  starts_p90: instantOrNull('In nine of ten; null: not within the horizon'),
  not_within_horizon: Type.Number({ description: 'Share of the runs in which it did not start, 0 to 1' }),
  sentence: Type.String({ description: 'For people' }),
})
export type StartForecastBody = Static<typeof StartForecastSchema>

export const ForecastQuerySchema = closed({
  forecast: Type.Optional(
    oneOf(['none', 'latest', 'wait'], {
      default: 'latest',
      description: 'latest: the one that there is, and another is begun; wait: wait some seconds for one',
    }),
  ),
})

const PointSchema = Type.Object({
  p10: Type.Number({ description: 'Foretold before the interval began' }),
  p50: Type.Number(),
  p90: Type.Number(),
  actual: Type.Number({ description: 'What came' }),
  score: Type.Number({ description: 'Distance of what came from p50, in widths of the band' }),
})
const point = objectOrNull(PointSchema, 'null: nothing was measured')

const EntrySchema = Type.Object({
  from: instant('Beginning of the interval'),
  to: instant('Its end'),
  queue_wait_s: point,
  starvation_percent: point,
  utilization_percent: point,
  swap_outs_per_hour: point,
})

const ScoresSchema = Type.Object({
  queue_wait_s: numberOrNull('Mean over the last hour; null: none compared'),
  starvation_percent: numberOrNull('The same'),
  utilization_percent: numberOrNull('The same'),
  swap_outs_per_hour: numberOrNull('The same'),
})

export const TwinSchema = Type.Object({
  state: oneOf(['unknown', 'steady', 'drifting'], {
    description:
      'drifting: some score is above the threshold, and no advice is given; unknown: too little was compared',
  }),
  scores: ScoresSchema,
  threshold: Type.Number(),
  unavailable_because: textOrNull('Why nothing is foretold now'),
  history: list(EntrySchema, { description: 'Oldest first, a day at most' }),
})
export type TwinBody = Static<typeof TwinSchema>
