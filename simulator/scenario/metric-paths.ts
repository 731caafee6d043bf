/** The names of all figures that a result has, as `assert.final` and tables of a sweep write them. */
import type { Metrics } from '../results/result.ts'
import type { Distribution } from '../results/samples.ts'

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
  unsignalled_wait_percent: true,
  unheard_percent: true,
  swaps_per_hour: true,
  swapped_gib_per_hour: true,
  swap_jain: true,
  tasks: { submitted: true, completed: true, failed: true, unfinished: true, fit_nowhere: true },
}

export const METRIC_PATHS: readonly string[] = pathsIn(METRICS, '')

function pathsIn(shape: object, prefix: string): string[] {
  return Object.entries(shape).flatMap(([key, inside]) =>
    inside === true ? [prefix + key] : pathsIn(inside as object, `${prefix}${key}.`),
  )
}
