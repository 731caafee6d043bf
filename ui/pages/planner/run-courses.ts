/**
 * The runs of two percentages over time: the median over their seeds with its band, on one time axis. Pure.
 */
import type { AdviceBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import type { SimulationSeriesBody } from '../../../controller/api/simulations/schema.ts'
import { bandedOf, type Banded } from './curves.ts'

/** Number of intervals on the time axis; a point is the mean of the interval that ends there. */
const INTERVALS = 60
const HOUR_S = 3_600

/**
 * The metrics that are drawn, by their names in a series. `counted`: a count per interval, shown per hour.
 */
const COURSES = [
  { series: 'utilization_percent', isCounted: false },
  { series: 'starvation_percent', isCounted: false },
  { series: 'tasks_pending', isCounted: false },
  { series: 'swap_outs', isCounted: true },
] as const
export type CourseName = (typeof COURSES)[number]['series']

export interface Course {
  readonly before: Banded
  readonly after: Banded
}

export interface Courses {
  /** Ends of the intervals, in seconds since the start. */
  readonly ends: readonly number[]
  readonly of: Readonly<Record<CourseName, Course>>
}

/** @param before series of one percentage, one per seed; ended runs are left out of later intervals */
export function coursesOf(
  before: readonly SimulationSeriesBody[],
  after: readonly SimulationSeriesBody[],
): Courses {
  const last = Math.max(0, ...[...before, ...after].map(({ x }) => x.at(-1) ?? 0))
  const ends = Array.from({ length: INTERVALS }, (_, index) => ((index + 1) * last) / INTERVALS)
  const side = (
    all: readonly SimulationSeriesBody[],
    { series: name, isCounted }: (typeof COURSES)[number],
  ): Banded => {
    const means = all.map(({ x, series }) => {
      const values = series.find((each) => each.name === name)?.values ?? []
      return meansOf(x, isCounted ? perHour(x, values) : values, ends)
    })
    return bandedOf(
      ends.map((_, index) => means.map((each) => each[index] ?? null).filter((value) => value !== null)),
    )
  }
  const entries = COURSES.map(
    (course) => [course.series, { before: side(before, course), after: side(after, course) }] as const,
  )
  return { ends, of: Object.fromEntries(entries) as Courses['of'] }
}

/**
 * The mean over each interval of a value that is constant between the ends; null after the end of the run.
 * @param x ends in ascending order; the first interval starts at 0
 */
export function meansOf(
  x: readonly number[],
  values: readonly number[],
  ends: readonly number[],
): readonly (number | null)[] {
  let at = 0
  return ends.map((to, index) => {
    const from = ends[index - 1] ?? 0
    let [sum, covered] = [0, 0]
    while (at < x.length) {
      const [begins, over] = [x[at - 1] ?? 0, x[at] as number]
      const overlap = Math.min(to, over) - Math.max(from, begins)
      const value = values[at]
      if (overlap > 0 && value !== undefined) [sum, covered] = [sum + overlap * value, covered + overlap]
      if (over > to) break
      at += 1
    }
    return covered === 0 ? null : sum / covered
  })
}

function perHour(x: readonly number[], counts: readonly number[]): readonly number[] {
  return counts.map((count, at) => (count * HOUR_S) / Math.max(1, (x[at] ?? 0) - (x[at - 1] ?? 0)))
}

export interface Sides {
  readonly before: number
  readonly after: number
}

/**
 * The default percentages to compare; null: there is only one.
 * 1. After: the recommended one, else the one closest to the objectives, else the highest.
 * 2. Before: the current one if it is part of the sweep, else the lowest other than after.
 * @param tried in ascending order
 */
export function sidesOf(
  tried: readonly number[],
  { recommended_percent: recommended, caveats }: AdviceBody,
  current: number | null,
): Sides | null {
  const nearest =
    caveats.find(({ nearest_percent: percent }) => percent !== undefined)?.nearest_percent ?? null
  const after = recommended ?? nearest ?? tried.at(-1)
  if (after === undefined) return null
  const before =
    current !== null && current !== after && tried.includes(current)
      ? current
      : tried.find((percent) => percent !== after)
  return before === undefined ? null : { before, after }
}
