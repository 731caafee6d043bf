/** `final`: bounds on the metrics of the result. */
import { METRIC_PATHS } from '../scenario/metrics.ts'
import type { Metrics } from '../scenario/metrics.ts'
import type { FinalAssertion } from '../scenario/assertions.ts'
import { nearestName } from '../document/nearest-name.ts'
import type { Report } from './violation.ts'

/** Checks all bounds. Throws for a path that no result has; scenarios from files were checked when loaded. */
export function requireMetricPaths(assertions: readonly FinalAssertion[]): void {
  for (const { metric } of assertions) {
    if (METRIC_PATHS.includes(metric)) continue
    const near = nearestName(metric, METRIC_PATHS)
    throw new RangeError(
      `assert.final: the result has no number ${metric}${near === null ? '' : `; did you mean ${near}?`}`,
    )
  }
}

export function checkFinal(
  { metric, min, max, equals }: FinalAssertion,
  metrics: Metrics,
  report: Report,
): void {
  const value = numberAt(metrics, metric)
  if (value === null) return report('the result has no such number: nothing happened that it counts')
  if (min !== null && value < min) report(`it is ${value}, the minimum is ${min}`)
  if (max !== null && value > max) report(`it is ${value}, the maximum is ${max}`)
  if (equals !== null && value !== equals) report(`it is ${value}, expected ${equals}`)
}

function numberAt(metrics: Metrics, path: string): number | null {
  let value: unknown = metrics
  for (const key of path.split('.'))
    value = (value as Readonly<Record<string, unknown>> | null)?.[key] ?? null
  return value as number | null
}
