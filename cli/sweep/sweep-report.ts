/** What came of a sweep: on stdout as a table and sentences or as JSON, and in its folder as JSON, CSV and a page. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_CONFIG } from '../../controller/domain/config.ts'
import { advise } from '../../simulator/plan/advisor.ts'
import type { Advice } from '../../simulator/plan/advisor.ts'
import { idlenessOf } from '../../simulator/plan/idleness.ts'
import type { Idleness } from '../../simulator/plan/idleness.ts'
import type { Objective } from '../../simulator/plan/objective.ts'
import { adviceNotes, adviceSentence, adviceTable } from '../../simulator/report/advice-text.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { runsCsv } from '../../simulator/report/runs-csv.ts'
import { formatSweep, sweepCsv } from '../../simulator/report/sweep-table.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom } from '../../simulator/seeded-random.ts'
import { bySettings, settingsText, summarize } from '../../simulator/sweep.ts'
import type { Settings, SweepSummary } from '../../simulator/sweep.ts'
import { chartLibrary } from './chart-library.ts'
import { processTiming } from '../stopwatch.ts'
import type { SweepAnswer } from '../sweep-run.ts'
import type { SweepPlan } from './sweep-plan.ts'

/** The advice on one setting of the fields beside the percentage. */
export type SettingAdvice = Advice & { readonly settings: Settings }

export interface SweepReport {
  readonly name: string
  readonly answers: readonly SweepAnswer[]
  readonly summary: readonly SweepSummary[]
  readonly advice: readonly SettingAdvice[]
}

/** @param answers at least one */
export async function reportOn(plan: SweepPlan, answers: readonly SweepAnswer[], objectives: readonly Objective[]): Promise<SweepReport> {
  const runs = answers.map(({ run }) => run)
  const advice: SettingAdvice[] = []
  for (const { settings, runs: group } of bySettings(runs)) {
    const point = plan.points.find((each) => settingsText(each.settings) === settingsText(settings))
    const idleness = point === undefined ? null : await idlenessIn(point.input.scenario, group[0]?.seed ?? 0)
    advice.push({ settings, ...advise({ runs: group, objectives, idleness }) })
  }
  return { name: plan.name, answers, summary: summarize(runs), advice }
}

/** Whoever draws the tasks of a run draws these. */
function idlenessIn(scenario: Scenario, seed: number): Promise<Idleness> {
  const idleSeconds = scenario.config.idle_swap_out_seconds ?? DEFAULT_CONFIG.idle_swap_out_seconds
  return idlenessOf(workloadOf(scenario, createSeededRandom(seed)), idleSeconds * 1000)
}

export function printSweep({ answers, summary, advice }: SweepReport, isJson: boolean): void {
  if (isJson) {
    const runs = answers.map(({ run, timing }) => ({ ...run, timing }))
    process.stdout.write(`${JSON.stringify({ runs, summary, advice }, null, 2)}\n`)
    return
  }
  process.stdout.write(formatSweep(summary))
  for (const each of advice) {
    const title = settingsText(each.settings)
    const sentences = [adviceSentence(each), ...adviceNotes(each)].map((sentence) => `${sentence}\n`)
    process.stdout.write(`\n${title === '' ? '' : `${title}\n`}${adviceTable(each)}\n${sentences.join('')}`)
  }
}

/** Each file is replaced whole. `result.json` comes last: where it stands, the others belong to it. */
export function writeSweep(folder: string, { name, answers, summary, advice }: SweepReport): void {
  const runs = answers.map(({ run }) => run)
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
  const write = (file: string, text: string): void => {
    const path = join(folder, file)
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
  write('runs.csv', runsCsv(runs))
  write('summary.csv', sweepCsv(summary))
  write('report.html', htmlReport({ name, runs, summary, advice, library: chartLibrary() }))
  write('timing.json', json({ ...processTiming(null), runs: answers.map(({ timing }) => timing) }))
  write('result.json', json({ runs, summary, advice }))
}
