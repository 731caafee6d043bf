/**
 * Output of `headroom sim sweep`: on stdout as a table and sentences or as JSON, and in its folder as JSON,
 * CSV and a page.
 */
import { join } from 'node:path'
import type { Idleness } from '../../simulator/experiment/advisor/idleness.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import { adviceTable } from '../../simulator/report/advice-text.ts'
import { formatSweep, sweepCsv } from '../../simulator/report/sweep-table.ts'
import { settingsText } from '../../simulator/experiment/sweep/sweep.ts'
import { writeOutput } from '../output-file.ts'
import { processTiming, type Timing } from '../runs/stopwatch.ts'
import type { SweepAnswer } from './sweep-run.ts'
import { idlenessOfScenario } from './idleness-of-scenario.ts'
import type { SweepPlan } from './sweep-plan.ts'
import { sweepHtml, sweepJson, sweepReport, sweepRunsCsv, type SweepReport } from './sweep-report.ts'

/** @param answers at least one */
export async function reportOn(
  plan: SweepPlan,
  answers: readonly SweepAnswer[],
  objectives: readonly Objective[],
): Promise<SweepReport> {
  const runs = answers.map(({ run }) => run)
  const done = new Set(runs.map(({ settings }) => settingsText(settings)))
  const idleness = new Map<string, Idleness>()
  for (const { settings, input } of plan.points) {
    const key = settingsText(settings)
    if (done.has(key)) idleness.set(key, await idlenessOfScenario(input.scenario, plan.jobs[0]?.seed ?? 0))
  }
  return sweepReport({
    planned: plan.jobs.length,
    runs,
    objectives,
    idlenessOf: (settings) => idleness.get(settingsText(settings)) ?? null,
  })
}

/** @param timings of the runs, in the same order */
export function printSweep(report: SweepReport, timings: readonly Timing[], isJson: boolean): void {
  if (isJson) {
    const runs = report.runs.map((run, i) => ({ ...run, timing: timings[i] }))
    process.stdout.write(`${JSON.stringify({ ...report, runs }, null, 2)}\n`)
    return
  }
  process.stdout.write(formatSweep(report.summary))
  for (const each of report.advice) {
    const title = settingsText(each.settings)
    process.stdout.write(`\n${title === '' ? '' : `${title}\n`}${adviceTable(each)}\n${each.text}\n`)
  }
}

/**
 * Replaces each file completely. `result.json` comes last: if it exists, the others belong to it.
 * @param name of the scenario
 */
export function writeSweep(
  folder: string,
  name: string,
  report: SweepReport,
  timings: readonly Timing[],
): void {
  const write = (file: string, text: string): void => writeOutput(`--out ${folder}`, join(folder, file), text)
  write('runs.csv', sweepRunsCsv(report))
  write('summary.csv', sweepCsv(report.summary))
  write('report.html', sweepHtml(name, report))
  write('timing.json', `${JSON.stringify({ ...processTiming(null), runs: timings }, null, 2)}\n`)
  write('result.json', sweepJson(report))
}
