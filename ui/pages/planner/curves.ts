/** The points of the charts. Medians and bands use the nearest rank. Pure. */
import type { AdviceBody, SweptRunBody } from '../../../controller/api/simulations/sweep-report-schema.ts'

type Column = readonly (number | null)[]

export interface Banded {
  readonly values: Column
  readonly band: readonly [low: Column, high: Column]
}

export interface Curves {
  /** Percentages in ascending order. */
  readonly x: readonly number[]
  readonly utilization: Banded
  readonly starvation: Banded
}

/** @param runs of one combination of the other fields */
export function curvesOf(runs: readonly SweptRunBody[]): Curves {
  const x = percentsOf(runs)
  const banded = (valueOf: (run: SweptRunBody) => number | null): Banded => {
    const at = (percent: number): readonly number[] =>
      runs
        .filter(({ overcommit_percent }) => overcommit_percent === percent)
        .map(valueOf)
        .filter((value) => value !== null)
    return bandedOf(x.map(at))
  }
  return {
    x,
    utilization: banded(({ metrics }) => metrics.utilization_percent),
    starvation: banded(({ metrics }) => metrics.starvation_percent.total),
  }
}

/** Median, p10 and p90 at each position; null without values. */
export function bandedOf(places: readonly (readonly number[])[]): Banded {
  const sorted = places.map((values) => values.toSorted((a, b) => a - b))
  const [middle = [], low = [], high = []] = [50, 10, 90].map((rank) =>
    sorted.map((values) => nearestRank(values, rank)),
  )
  return { values: middle, band: [low, high] }
}

export interface Pareto {
  /** Utilization in ascending order. */
  readonly x: readonly number[]
  /** Starvation of the percentages on the Pareto front; null: not on the front. */
  readonly best: Column
  readonly others: Column
  /** `50%` */
  readonly names: readonly string[]
}

/**
 * A percentage is dominated by another that has at least its utilization and at most its starvation, and is
 * better in one of them.
 */
export function paretoOf(runs: readonly SweptRunBody[], marks: readonly Mark[] = []): Pareto {
  const { x, utilization, starvation } = curvesOf(runs)
  const points = x
    .flatMap((percent, i) => {
      const [u, s] = [utilization.values[i] ?? null, starvation.values[i] ?? null]
      return u === null || s === null ? [] : [{ percent, u, s }]
    })
    .sort((a, b) => a.u - b.u || a.percent - b.percent)
  const isBeaten = ({ u, s }: { readonly u: number; readonly s: number }): boolean =>
    points.some((other) => other.u >= u && other.s <= s && (other.u > u || other.s < s))
  const marksAt = (same: readonly { readonly percent: number }[]): string => {
    const words = marks
      .filter(({ x: at }) => same.some(({ percent }) => percent === at))
      .map(({ what }) => what)
    return words.length === 0 ? '' : ` (${words.join(', ')})`
  }
  // Percentages at the same position are one point with all their names.
  const places = points.flatMap((point) => {
    const same = points.filter(({ u, s }) => u === point.u && s === point.s)
    return same[0] === point
      ? [{ ...point, name: `${same.map(({ percent }) => percent).join(', ')}%${marksAt(same)}` }]
      : []
  })
  return {
    x: places.map(({ u }) => u),
    best: places.map((place) => (isBeaten(place) ? null : place.s)),
    others: places.map((place) => (isBeaten(place) ? place.s : null)),
    names: places.map(({ name }) => name),
  }
}

export interface Mark {
  readonly x: number
  /** `knee` */
  readonly what: string
  /** `knee 50%` */
  readonly name: string
  readonly colour: string
}

/** @param current percentage of the live cluster; null: unknown */
export function marksOf(
  { recommended_percent, knee_percent }: AdviceBody,
  current: number | null,
): readonly Mark[] {
  const marks = [
    { x: current, name: 'current', colour: '--quiet' },
    { x: recommended_percent, name: 'recommended', colour: '--good' },
    { x: knee_percent, name: 'knee', colour: '--committed' },
  ]
  return marks.flatMap(({ x, name, colour }) =>
    x === null ? [] : [{ x, what: name, name: `${name} ${x}%`, colour }],
  )
}

function percentsOf(runs: readonly SweptRunBody[]): readonly number[] {
  return [...new Set(runs.map(({ overcommit_percent }) => overcommit_percent))].sort((a, b) => a - b)
}

/** @param sorted in ascending order */
function nearestRank(sorted: readonly number[], percent: number): number | null {
  return sorted[Math.max(0, Math.ceil((percent * sorted.length) / 100) - 1)] ?? null
}
