/** Difference between two percentages, metric by metric. */
import type { Percent } from '../../../protocol/units.ts'
import type { Metrics } from '../../scenario/metrics.ts'
import type { SweepRun } from '../sweep/sweep.ts'
import { pairedDifference, type PairedDifference } from './paired-difference.ts'

export type ChangedFigure = 'queue_wait.p95' | 'starvation.total' | 'utilization'

export interface Change {
  readonly figure: ChangedFigure
  /** Means over the seeds that ran at both percentages; seconds or percent. */
  readonly before: number
  readonly after: number
  /** After minus before, paired by seed. */
  readonly difference: PairedDifference
  /** `same`: too small to matter, or not distinguishable by the seeds. */
  readonly verdict: 'better' | 'worse' | 'same'
}

interface Figure {
  readonly valueOf: (metrics: Metrics) => number | null
  readonly isHigherBetter: boolean
  /** A smaller change does not matter, whatever the seeds say. */
  readonly least: number
}

const LEAST_WAIT_S = 10
const LEAST_POINTS = 1

const FIGURES: Readonly<Record<ChangedFigure, Figure>> = {
  'queue_wait.p95': {
    valueOf: ({ queue_wait_s }) => queue_wait_s?.p95 ?? null,
    isHigherBetter: false,
    least: LEAST_WAIT_S,
  },
  'starvation.total': {
    valueOf: ({ starvation_percent }) => starvation_percent.total,
    isHigherBetter: false,
    least: LEAST_POINTS,
  },
  utilization: {
    valueOf: ({ utilization_percent }) => utilization_percent,
    isHigherBetter: true,
    least: LEAST_POINTS,
  },
}

/**
 * The changes from one percentage to another, in this order:
 * 1. Gains, then losses, then unchanged metrics.
 * 2. The larger factor between before and after.
 * 3. Queue wait, starvation, utilization.
 * A metric that no seed has at both percentages is omitted.
 */
export function changesBetween(runs: readonly SweepRun[], from: Percent, to: Percent): Change[] {
  const names = Object.keys(FIGURES) as ChangedFigure[]
  return names
    .flatMap((figure) => changeOf(figure, runs, from, to) ?? [])
    .sort(
      (a, b) =>
        rankOf(a) - rankOf(b) ||
        descending(factorOf(a), factorOf(b)) ||
        names.indexOf(a.figure) - names.indexOf(b.figure),
    )
}

/** In points of utilization, `to` minus `from`, one pair for each seed of both. */
export function utilizationDifference(
  runs: readonly SweepRun[],
  from: Percent,
  to: Percent,
): PairedDifference {
  return pairedDifference(
    pairsOf(FIGURES.utilization, runs, from, to).map(([before, after]) => after - before),
  )
}

function changeOf(name: ChangedFigure, runs: readonly SweepRun[], from: Percent, to: Percent): Change | null {
  const figure = FIGURES[name]
  const pairs = pairsOf(figure, runs, from, to)
  if (pairs.length === 0) return null
  const difference = pairedDifference(pairs.map(([before, after]) => after - before))
  return {
    figure: name,
    before: mean(pairs.map(([before]) => before)),
    after: mean(pairs.map(([, after]) => after)),
    difference,
    verdict: verdictOf(figure, difference),
  }
}

function pairsOf(
  { valueOf }: Figure,
  runs: readonly SweepRun[],
  from: Percent,
  to: Percent,
): (readonly [number, number])[] {
  const at = (percent: Percent): ReadonlyMap<number, number | null> =>
    new Map(
      runs
        .filter((run) => run.overcommit_percent === percent)
        .map(({ seed, metrics }) => [seed, valueOf(metrics)]),
    )
  const befores = at(from)
  const bySeed = [...at(to)].sort(([a], [b]) => a - b)
  return bySeed.flatMap(([seed, after]) => {
    const before = befores.get(seed) ?? null
    return before === null || after === null ? [] : [[before, after] as const]
  })
}

/** A single pair is used as it is: a caveat of the advice says that one seed proves nothing. */
function verdictOf({ isHigherBetter, least }: Figure, difference: PairedDifference): Change['verdict'] {
  const { mean: by, pairs, told_apart } = difference
  if (Math.abs(by) < least || (pairs > 1 && !told_apart)) return 'same'
  return by > 0 === isHigherBetter ? 'better' : 'worse'
}

function rankOf({ verdict }: Change): number {
  return { better: 0, worse: 1, same: 2 }[verdict]
}

/** 1 or more; infinite if one of them is 0. */
function factorOf({ before, after }: Change): number {
  const [low, high] = [Math.min(before, after), Math.max(before, after)]
  return high === low ? 1 : low <= 0 ? Infinity : high / low
}

/** Handles two infinities. */
function descending(a: number, b: number): number {
  return a === b ? 0 : a > b ? -1 : 1
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}
