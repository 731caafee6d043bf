/** A sweep: the same scenario at several overcommit percentages, each with the same seeds, so that runs differ in nothing else. Pure: who runs them is elsewhere. */
import type { Percent } from '../protocol/units.ts'
import type { Metrics, RunResult } from './report/result.ts'

export interface SweepJob {
  readonly overcommitPercent: Percent
  readonly seed: number
}

export type SweepRun = RunResult & { readonly overcommit_percent: Percent }

/** Over the seeds of one percentage; the band is nearest rank. Null when no run has the figure. */
export interface Band {
  readonly mean: number
  readonly p10: number
  readonly p90: number
}

export interface SweepSummary {
  readonly overcommit_percent: Percent
  readonly seeds: number
  readonly utilization_percent: Band | null
  readonly starvation_percent: { readonly [Part in keyof Metrics['starvation_percent']]: Band | null }
  readonly queue_wait_s: { readonly p50: Band | null; readonly p95: Band | null }
  readonly swaps_per_hour: Band | null
  readonly swapped_gib_per_hour: Band | null
  readonly swap_jain: Band | null
}

/** By percentage, then seed: the order of the runs in every result. */
export function sweepJobs(percentages: readonly Percent[], seeds: readonly number[]): SweepJob[] {
  return percentages.flatMap((overcommitPercent) => seeds.map((seed) => ({ overcommitPercent, seed })))
}

export function sweepRunOf({ overcommitPercent }: SweepJob, result: RunResult): SweepRun {
  return { overcommit_percent: overcommitPercent, ...result }
}

/** One summary for each percentage, in the order in which they first occur. */
export function summarize(runs: readonly SweepRun[]): SweepSummary[] {
  const byPercent = new Map<Percent, Metrics[]>()
  for (const { overcommit_percent, metrics } of runs) {
    byPercent.set(overcommit_percent, [...(byPercent.get(overcommit_percent) ?? []), metrics])
  }
  return [...byPercent].map(([percent, metrics]) => summaryOf(percent, metrics))
}

function summaryOf(percent: Percent, runs: readonly Metrics[]): SweepSummary {
  const band = (valueOf: (metrics: Metrics) => number | null | undefined): Band | null => bandOf(runs.map(valueOf))
  return {
    overcommit_percent: percent,
    seeds: runs.length,
    utilization_percent: band((m) => m.utilization_percent),
    starvation_percent: {
      total: band((m) => m.starvation_percent.total),
      queue: band((m) => m.starvation_percent.queue),
      swap: band((m) => m.starvation_percent.swap),
      compute: band((m) => m.starvation_percent.compute),
    },
    queue_wait_s: { p50: band((m) => m.queue_wait_s?.p50), p95: band((m) => m.queue_wait_s?.p95) },
    swaps_per_hour: band((m) => m.swaps_per_hour),
    swapped_gib_per_hour: band((m) => m.swapped_gib_per_hour),
    swap_jain: band((m) => m.swap_jain),
  }
}

function bandOf(values: readonly (number | null | undefined)[]): Band | null {
  const known = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b)
  if (known.length === 0) return null
  const rank = (percent: number): number => known[Math.max(0, Math.ceil((percent * known.length) / 100) - 1)] as number
  return { mean: known.reduce((sum, value) => sum + value, 0) / known.length, p10: rank(10), p90: rank(90) }
}
