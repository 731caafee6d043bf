/**
 * The result of a sweep, for command line and REST: figures of each percentage, the advice, and all of it as
 * files.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { advise, type Advice } from '../../simulator/experiment/advisor/advisor.ts'
import type { Idleness } from '../../simulator/experiment/advisor/idleness.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import {
  bySettings,
  summarize,
  type Settings,
  type SweepRun,
  type SweepSummary,
} from '../../simulator/experiment/sweep/sweep.ts'
import { adviceNotes, adviceSentence } from '../../simulator/report/advice-text.ts'
import type { ChartLibrary } from '../../simulator/report/html/page.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { runsCsv } from '../../simulator/report/runs-csv.ts'

/** The advice on one setting of the fields other than the percentage. */
type SettingAdvice = Advice & {
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

interface SweptRuns {
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

/**
 * uPlot for embedding in a report, from its package, with its licence; null where the package is not
 * installed.
 */

export function chartLibrary(): ChartLibrary | null {
  try {
    const root = dirname(createRequire(import.meta.url).resolve('uplot/package.json'))
    const text = (name: string): string => readFileSync(join(root, name), 'utf8').replaceAll('\r\n', '\n')
    const licence = text('LICENSE').replaceAll('*/', '* /').trim()
    return {
      script: `/*\n${licence}\n*/\n${text('dist/uPlot.iife.min.js')}`,
      style: text('dist/uPlot.min.css'),
    }
  } catch {
    // The static charts are in the page anyway.
    return null
  }
}
