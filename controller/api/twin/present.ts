import type {
  ChangeForecast,
  DriftReport,
  FittedCopies,
  ForecastBand,
  ForecastBasis,
  ForecastCourses,
  MetricChange,
  NodeSpeeds,
  NoForecast,
  StartForecast,
  TaskStartForecast,
  TwinMetric,
} from '../../ports/twin.ts'
import type { ChangeForecastBody, StartForecastBody, TwinBody } from './schema.ts'
import { presentInstant } from '../http/instant.ts'

export function presentStart(forecast: StartForecast, taskId: string): StartForecastBody | null {
  const start = forecast.starts.get(taskId)
  if (start === undefined) return null
  const { p50, p90, notWithinHorizon } = start
  return {
    ...presentBasis(forecast),
    starts_p50: p50 === null ? null : presentInstant(p50),
    starts_p90: p90 === null ? null : presentInstant(p90),
    not_within_horizon: rounded(notWithinHorizon),
    sentence: startSentence(forecast, start),
  }
}

function startSentence(
  { at, horizonMs, runs }: ForecastBasis,
  { p50, p90, notWithinHorizon }: TaskStartForecast,
): string {
  const within = minutes(horizonMs)
  const share = `${Math.round(notWithinHorizon * 100)}% of ${runs} runs`
  if (p50 === null) return `It is not expected to start within ${within}: it did not start in ${share}.`
  const likely = `It is expected to start in ${minutes(p50 - at)}`
  if (p90 === null) return `${likely}, but in ${share} it did not start within ${within}.`
  return `${likely}, and within ${minutes(p90 - at)} in 90% of ${runs} runs.`
}

export function presentChange(forecast: ChangeForecast): ChangeForecastBody {
  const { queue_wait_s, starvation_percent, utilization_percent, swap_outs_per_hour } = forecast.metrics
  return {
    ...presentBasis(forecast),
    queue_wait_s: presentMetric(queue_wait_s),
    starvation_percent: presentMetric(starvation_percent),
    utilization_percent: presentMetric(utilization_percent),
    swap_outs_per_hour: presentMetric(swap_outs_per_hour),
    courses: presentCourses(forecast.courses),
    sentence: changeSentence(forecast),
  }
}

function presentCourses({ endsMs, metrics }: ForecastCourses): ChangeForecastBody['courses'] {
  const course = (metric: TwinMetric) => ({
    before: presentBand(metrics[metric].before),
    after: presentBand(metrics[metric].after),
  })
  return {
    ends_seconds: endsMs.map((ms) => Math.round(ms / 1000)),
    queue_wait_s: course('queue_wait_s'),
    starvation_percent: course('starvation_percent'),
    utilization_percent: course('utilization_percent'),
    swap_outs_per_hour: course('swap_outs_per_hour'),
  }
}

function presentBand({ p10, p50, p90 }: ForecastBand): ForecastBand {
  const column = (values: readonly (number | null)[]) =>
    values.map((value) => (value === null ? null : rounded(value)))
  return { p10: column(p10), p50: column(p50), p90: column(p90) }
}

/** Each in the singular, as the verbs are. */
const WORDS: Readonly<Record<TwinMetric, readonly [name: string, valueOf: (value: number) => string]>> = {
  queue_wait_s: ['queue wait', secondsOrMore],
  starvation_percent: ['starvation', percent],
  utilization_percent: ['utilization', percent],
  swap_outs_per_hour: ['the rate of swap-outs', (value) => `${shown(value)} an hour`],
}

function changeSentence({ metrics, horizonMs, runs }: ChangeForecast): string {
  const parts = (Object.keys(WORDS) as TwinMetric[]).flatMap((metric) => {
    const change = metrics[metric]
    if (change === null) return []
    const [name, valueOf] = WORDS[metric]
    const [before, after] = [valueOf(change.before), valueOf(change.after)]
    if (change.verdict === 'stays') return [`${name} stays at ${before}`]
    if (change.verdict === 'unclear') return [`${name} could rise or fall (${before} → ${after})`]
    return [`${name} ${change.verdict} from ${before} to ${after}`]
  })
  return `Over the next ${minutes(horizonMs)}, in ${runs} pairs of runs: ${parts.join('; ')}.`
}

function presentMetric(change: MetricChange | null): ChangeForecastBody['queue_wait_s'] {
  if (change === null) return null
  const { before, after, difference, agreement, verdict } = change
  const { p10, p50, p90 } = difference
  return {
    before: rounded(before),
    after: rounded(after),
    difference: { p10: rounded(p10), p50: rounded(p50), p90: rounded(p90) },
    agreement: rounded(agreement),
    verdict,
  }
}

/** Maximum number of nodes in an answer. */
const MAX_SPEEDS = 1_000

export function presentTwin(
  { state, scores, threshold, because, history }: DriftReport,
  speeds: readonly NodeSpeeds[],
): TwinBody {
  const latest = speeds.toSorted((a, b) => b.latestAt - a.latestAt).slice(0, MAX_SPEEDS)
  return {
    state,
    scores,
    threshold,
    unavailable_because: because === null ? null : presentNoForecast(because),
    history: history.map(({ from, to, metrics }) => ({
      from: presentInstant(from),
      to: presentInstant(to),
      ...metrics,
    })),
    speeds: latest.map(({ nodeId, methods, starts, latestAt }) => ({
      node_id: nodeId,
      methods: methods.map((each) => ({
        method: each.method,
        out: presentCopies(each.out),
        in: presentCopies(each.in),
        residual_mib: each.residualMib,
      })),
      starts: { observed: starts.observed, ms: starts.ms },
      latest_at: presentInstant(latestAt),
    })),
  }
}

function presentCopies({ fixedMs, mibPerS, observed, errorPercent, profileErrorPercent }: FittedCopies) {
  return {
    fixed_ms: fixedMs,
    mib_per_s: mibPerS,
    observed,
    error_percent: errorPercent === null ? null : rounded(errorPercent),
    profile_error_percent: profileErrorPercent === null ? null : rounded(profileErrorPercent),
  }
}

/** Reason and words in one text, as it stands where a forecast would. */
export function presentNoForecast({ reason, detail }: NoForecast): string {
  return `${reason}: ${detail}.`
}

function presentBasis({ at, horizonMs, runs, assumes }: ForecastBasis) {
  return { at: presentInstant(at), horizon_seconds: Math.round(horizonMs / 1000), runs, assumes }
}

function secondsOrMore(seconds: number): string {
  return seconds < 120 ? `${shown(seconds)} s` : minutes(seconds * 1000)
}

function minutes(ms: number): string {
  const whole = Math.round(ms / 60_000)
  if (whole < 1) return 'less than a minute'
  if (whole < 120) return whole === 1 ? '1 minute' : `${whole} minutes`
  return `${(ms / 3_600_000).toFixed(1)} hours`
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000
}

function percent(value: number): string {
  return `${shown(value)}%`
}

function shown(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)
}
