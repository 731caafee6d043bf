/**
 * A sweep: the same scenario at several overcommit percentages, and at several values of other fields, each
 * with the same seeds, so that runs of one seed differ in nothing else (common random numbers). Pure: running
 * them is the caller's task.
 */
import type { Percent } from '../../../protocol/units.ts'
import { nearestRank } from '../../kernel/quantile.ts'
import { underBothNames, type RunResult } from '../../results/result.ts'
import type { Metrics } from '../../scenario/metrics.ts'
import type { Override, OverrideValue } from '../../document/override.ts'

/** A field other than the percentage, and the values to try. */
export interface SweepAxis {
  /** Dotted: `config.idle_swap_out_seconds`, `fleet.0.count`. */
  readonly field: string
  readonly values: readonly OverrideValue[]
}

/** The value of every other varied field, by its dotted path; empty without one. */
export type Settings = Readonly<Record<string, OverrideValue>>

export interface SweepJob {
  readonly overcommitPercent: Percent
  readonly settings: Settings
  readonly seed: number
}

export type SweepRun = RunResult & { readonly overcommit_percent: Percent; readonly settings: Settings }

/** Over the seeds of one percentage; quantiles are nearest rank. Null if no run has the metric. */
export interface Band {
  readonly mean: number
  readonly p10: number
  readonly p90: number
  readonly p95: number
}

export interface SweepSummary {
  readonly overcommit_percent: Percent
  readonly settings: Settings
  readonly seeds: number
  readonly utilization_percent: Band | null
  readonly starvation_percent: { readonly [Part in keyof Metrics['starvation_percent']]: Band | null }
  /** Present only if a run has it: if servers cannot signal that a task wants the GPU. */
  readonly unsignalled_wait_percent?: Band
  /** Former name of `unsignalled_wait_percent`; removed in 0.2. */
  readonly unheard_percent?: Band
  readonly queue_wait_s: { readonly p50: Band | null; readonly p95: Band | null }
  /** Present only if a run has it: if swapped-out tasks returned because they wanted the GPU. */
  readonly wake_s?: { readonly p50: Band | null; readonly p95: Band | null }
  readonly swaps_per_hour: Band | null
  readonly swapped_gib_per_hour: Band | null
  readonly swap_jain: Band | null
}

/** By setting, percentage, then seed: the order of the runs in every result. */
export function sweepJobs(
  percentages: readonly Percent[],
  seeds: readonly number[],
  axes: readonly SweepAxis[] = [],
): SweepJob[] {
  return settingsOf(axes).flatMap((settings) =>
    percentages.flatMap((overcommitPercent) => seeds.map((seed) => ({ overcommitPercent, settings, seed }))),
  )
}

/** Number of runs, without creating them. */
export function sweepSize(
  percentages: readonly Percent[],
  seeds: readonly number[],
  axes: readonly SweepAxis[],
): number {
  return axes.reduce((product, { values }) => product * values.length, percentages.length * seeds.length)
}

/** Every combination; the values of the last field change first. */
export function settingsOf(axes: readonly SweepAxis[]): Settings[] {
  let combinations: Settings[] = [{}]
  for (const { field, values } of axes)
    combinations = combinations.flatMap((each) => values.map((value) => ({ ...each, [field]: value })))
  return combinations
}

export function overridesOf(settings: Settings): Override[] {
  return Object.entries(settings).map(([field, value]) => ({ field, value }))
}

/** `config.idle_swap_out_seconds=60, fleet.0.count=2`; empty without other fields. */
export function settingsText(settings: Settings): string {
  return Object.entries(settings)
    .map(([field, value]) => `${field}=${value}`)
    .join(', ')
}

export function sweepRunOf(
  { overcommitPercent, settings }: Omit<SweepJob, 'seed'>,
  result: RunResult,
): SweepRun {
  return { overcommit_percent: overcommitPercent, settings, ...result }
}

/** The runs of each combination of the other fields, in the order in which they first occur. */
export function bySettings(
  runs: readonly SweepRun[],
): ReadonlyArray<{ readonly settings: Settings; readonly runs: readonly SweepRun[] }> {
  const groups = new Map<string, { settings: Settings; runs: SweepRun[] }>()
  for (const run of runs) {
    const key = settingsText(run.settings)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { settings: run.settings, runs: [run] })
    else group.runs.push(run)
  }
  return [...groups.values()]
}

/** The runs of each percentage, in the order in which the percentages first occur. */
export function byPercent(runs: readonly SweepRun[]): ReadonlyMap<Percent, readonly SweepRun[]> {
  const groups = new Map<Percent, SweepRun[]>()
  for (const run of runs) {
    const group = groups.get(run.overcommit_percent)
    if (group === undefined) groups.set(run.overcommit_percent, [run])
    else group.push(run)
  }
  return groups
}

/** One summary for each setting and percentage, in the order in which they first occur. */
export function summarize(runs: readonly SweepRun[]): SweepSummary[] {
  return bySettings(runs).flatMap(({ settings, runs: group }) =>
    [...byPercent(group)].map(([percent, each]) => summaryOf(percent, settings, each)),
  )
}

function summaryOf(percent: Percent, settings: Settings, runs: readonly SweepRun[]): SweepSummary {
  const band = (valueOf: (metrics: Metrics) => number | null | undefined): Band | null =>
    bandOf(runs.map(({ metrics }) => valueOf(metrics)))
  const wakeP95 = band((m) => m.wake_s?.p95)
  const unsignalled = band((m) => m.unsignalled_wait_percent ?? m.unheard_percent)
  return {
    overcommit_percent: percent,
    settings,
    seeds: runs.length,
    utilization_percent: band((m) => m.utilization_percent),
    starvation_percent: {
      total: band((m) => m.starvation_percent.total),
      queue: band((m) => m.starvation_percent.queue),
      swap: band((m) => m.starvation_percent.swap),
      compute: band((m) => m.starvation_percent.compute),
    },
    ...(unsignalled === null ? {} : underBothNames(unsignalled)),
    queue_wait_s: { p50: band((m) => m.queue_wait_s?.p50), p95: band((m) => m.queue_wait_s?.p95) },
    ...(wakeP95 === null ? {} : { wake_s: { p50: band((m) => m.wake_s?.p50), p95: wakeP95 } }),
    swaps_per_hour: band((m) => m.swaps_per_hour),
    swapped_gib_per_hour: band((m) => m.swapped_gib_per_hour),
    swap_jain: band((m) => m.swap_jain),
  }
}

/** Null if no value is known. */
export function bandOf(values: readonly (number | null | undefined)[]): Band | null {
  const known = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b)
  if (known.length === 0) return null
  return {
    mean: known.reduce((sum, value) => sum + value, 0) / known.length,
    p10: nearestRank(known, 10),
    p90: nearestRank(known, 90),
    p95: nearestRank(known, 95),
  }
}
