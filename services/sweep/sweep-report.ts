/**
 * The result of a sweep, for command line and REST: figures of each percentage, the advice, and all of it as
 * files.
 */
import type { Advice } from '../../simulator/experiment/advisor/advisor.ts'
import { advise } from '../../simulator/experiment/advisor/advisor.ts'
import type { Idleness } from '../../simulator/experiment/advisor/idleness.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import { adviceNotes, adviceSentence } from '../../simulator/report/advice-text.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { runsCsv } from '../../simulator/report/runs-csv.ts'
import { bySettings, summarize } from '../../simulator/experiment/sweep/sweep.ts'
import type { Settings, SweepRun, SweepSummary } from '../../simulator/experiment/sweep/sweep.ts'
import { chartLibrary } from './chart-library.ts'

/** The advice on one setting of the fields other than the percentage. */
export type SettingAdvice = Advice & {
  readonly settings: Settings
  /** For display: one sentence per line, the recommendation first. */
  readonly text: string
}

export interface SweepReport {
  readonly runs_done: number
  readonly runs_planned: number
  readonly runs: readonly SweepRun[]
  readonly summary: readonly SweepSummary[]
  readonly advice: readonly SettingAdvice[]
}

export interface SweptRuns {
  readonly planned: number
  /** The finished runs, in the order of the sweep; at least one. */
  readonly runs: readonly SweepRun[]
  readonly objectives: readonly Objective[]
  /** Idleness of the workload alone; null: not known. */
  readonly idlenessOf: (settings: Settings) => Idleness | null
}

export function sweepReport({ planned, runs, objectives, idlenessOf }: SweptRuns): SweepReport {
  const advice = bySettings(runs).map(({ settings, runs: group }): SettingAdvice => {
    const each = advise({ runs: group, objectives, idleness: idlenessOf(settings) })
    return { settings, ...each, text: [adviceSentence(each), ...adviceNotes(each)].join('\n') }
  })
  return { runs_done: runs.length, runs_planned: planned, runs, summary: summarize(runs), advice }
}

/** `result.json`. */
export function sweepJson(report: SweepReport): string {
  return `${JSON.stringify(report, null, 2)}\n`
}

/** `runs.csv`. */
export function sweepRunsCsv({ runs }: SweepReport): string {
  return runsCsv(runs)
}

/**
 * `report.html`.
 * @param name of the scenario
 */
export function sweepHtml(name: string, { runs, summary, advice }: SweepReport): string {
  return htmlReport({ name, runs, summary, advice, library: chartLibrary() })
}
