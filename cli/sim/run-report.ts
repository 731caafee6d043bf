/**
 * Runs a plan and prints its result: shared by `sim run` and `sim replay`. Loads no module that reads
 * scenarios.
 */
import { basename } from 'node:path'
import { formatResult } from '../../simulator/report/summary.ts'
import { runScenario } from '../../simulator/run/run.ts'
import type { Run, RunIdentity, RunOptions, RunPlan } from '../../simulator/run/run.ts'
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { withProgress } from '../output/progress.ts'
import { openRunFolder } from '../../services/runs/run-folder.ts'
import { createStopwatch, processTiming } from '../../services/runs/stopwatch.ts'
import type { Timing } from '../../services/runs/stopwatch.ts'

export interface OutputOptions {
  readonly json?: boolean
  readonly out?: string
}

/** Prints JSON, or a summary on stdout and the timing on stderr. */
export async function runAndReport(
  title: string,
  plan: RunPlan,
  identity: RunIdentity,
  runOptions: RunOptions,
  output: OutputOptions,
): Promise<number> {
  const folder = output.out === undefined ? null : openRunFolder(output.out, plan.clock.startMs)
  const stopwatch = createStopwatch()
  const [run, timing] = await withProgress(basename(title), (onProgress) =>
    runScenario(plan, identity, { ...runOptions, ...folder?.options, stopwatch, onProgress }),
  )
    .then((done) => {
      const took = processTiming(stopwatch)
      folder?.finish(done, took)
      return [done, took] as const
    })
    .catch((error: unknown) => {
      folder?.abandon()
      throw error
    })
  print(title, run, timing, output.json === true)
  for (const fault of run.operatorFaults) process.stderr.write(`${fault}\n`)
  return run.operatorFaults.length === 0 ? EXIT_OK : EXIT_FAILED
}

function print(title: string, { result }: Run, timing: Timing, isJson: boolean): void {
  if (isJson) {
    process.stdout.write(`${JSON.stringify({ ...result, timing }, null, 2)}\n`)
    return
  }
  process.stdout.write(formatResult(title, result))
  process.stderr.write(
    `took ${timing.wall_s.toFixed(1)} s; CPU time: ${timing.cpu_s.toFixed(1)} s, of which ` +
      `${timing.decide_s.toFixed(1)} s for decisions\n`,
  )
}
