/** `final`: bounds on the numbers of the result. */
import type { Distribution } from '../report/samples.ts'
import type { Metrics } from '../report/result.ts'
import type { FinalAssertion } from '../scenario/assertions.ts'
import { nearestName } from '../scenario/nearest-name.ts'
import type { Report } from './violation.ts'

type Shape<T> = T extends number | null ? true : { readonly [K in keyof T]-?: Shape<NonNullable<T[K]>> }

const DISTRIBUTION: Shape<Distribution> = { mean: true, p50: true, p95: true, p99: true }

/** Every number that a result has. The compiler holds it against `Metrics`. */
const METRICS: Shape<Metrics> = {
  jct_s: DISTRIBUTION,
  queue_wait_s: DISTRIBUTION,
  slowdown: DISTRIBUTION,
  makespan_s: true,
  utilization_percent: true,
  starvation_percent: { total: true, queue: true, swap: true, compute: true },
  swaps_per_hour: true,
  swapped_gib_per_hour: true,
  swap_jain: true,
  tasks: { submitted: true, completed: true, failed: true, unfinished: true },
}

export const METRIC_PATHS: readonly string[] = pathsIn(METRICS, '')

/** Of all bounds at once. Throws for a path that no result has. */
export function requireMetricPaths(assertions: readonly FinalAssertion[]): void {
  for (const { metric } of assertions) {
    if (METRIC_PATHS.includes(metric)) continue
    const near = nearestName(metric, METRIC_PATHS)
    throw new RangeError(`assert.final: the result has no number ${metric}${near === null ? '' : `; did you mean ${near}?`}`)
  }
}

export function checkFinal({ metric, min, max, equals }: FinalAssertion, metrics: Metrics, report: Report): void {
  const value = numberAt(metrics, metric)
  if (value === null) return report('the result has no such number: nothing happened that it counts')
  if (min !== null && value < min) report(`it is ${value}, the least allowed is ${min}`)
  if (max !== null && value > max) report(`it is ${value}, the most allowed is ${max}`)
  if (equals !== null && value !== equals) report(`it is ${value}, it should be ${equals}`)
}

function numberAt(metrics: Metrics, path: string): number | null {
  let value: unknown = metrics
  for (const key of path.split('.')) value = (value as Readonly<Record<string, unknown>> | null)?.[key] ?? null
  return value as number | null
}

function pathsIn(shape: object, prefix: string): string[] {
  return Object.entries(shape).flatMap(([key, inside]) =>
    inside === true ? [prefix + key] : pathsIn(inside as object, `${prefix}${key}.`),
  )
}
