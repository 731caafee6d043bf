/** One run in its own process: its result, and its time series. */
import type { RunChoices, RunResidency, SimulationSeries } from '../../../controller/ports/simulation.ts'
import type { RunResult } from '../../../simulator/results/result.ts'
import { ResidencyRecorder } from '../../../simulator/report/residency.ts'
import { SeriesSampler } from '../../../simulator/run/series-sampler.ts'
import type { Idleness } from '../../../simulator/experiment/advisor/idleness.ts'
import { planOf, runScenario } from '../../../simulator/run/run.ts'
import type { ScenarioSource } from '../../../simulator/scenario/load.ts'
import type { Override } from '../../../simulator/document/override.ts'
import { readRunInput } from '../../runs/run-input.ts'
import { createStopwatch, startTiming, type Timing } from '../../runs/stopwatch.ts'
import { idlenessOfScenario } from '../../sweep/idleness-of-scenario.ts'
import { LIMITS } from '../library/limits.ts'
import { whyTooLarge } from '../library/scenario-facts.ts'

export interface RunJob {
  readonly source: ScenarioSource
  /** Fields of the scenario with a value other than in its text. */
  readonly overrides?: readonly Override[]
  /** Also analyses the workload alone. */
  readonly asksIdleness?: boolean
  /** Rows of its series; absent: the maximum of a series. */
  readonly seriesRows?: number
  readonly choices: RunChoices
}

export interface RunAnswer {
  readonly result: RunResult
  readonly series: SimulationSeries
  readonly residency: RunResidency
  /** Null: not requested. */
  readonly idleness: Idleness | null
  readonly timing: Timing
  /** Answers to the scenario's operator that it did not expect. */
  readonly operatorFaults: readonly string[]
}

/** A limit of this service, not a fault of the scenario. */
export class LimitReached extends Error {
  override readonly name = 'LimitReached'
}

/** Steps between progress reports of a run. */
const STEPS_PER_BEAT = 1024

export async function runJob(job: RunJob, onProgress: (fraction: number) => void): Promise<RunAnswer> {
  const { source, overrides, choices } = job
  const input = await readRunInput(source, overrides, new Map(), choices.untilMs ?? Infinity)
  const { scenario, identity, expectedTasks } = input
  const tooLarge = whyTooLarge({ nodes: 0, gpus: 0, expectedTasks: Math.ceil(expectedTasks) })
  if (tooLarge !== null) throw new LimitReached(tooLarge)
  const chosen = {
    ...(choices.seed === null ? {} : { seed: choices.seed }),
    ...(choices.untilMs === null ? {} : { untilMs: choices.untilMs }),
    ...(choices.overcommitPercent === null ? {} : { overcommitPercent: choices.overcommitPercent }),
  }
  const plan = planOf(scenario, chosen)
  const idleness = job.asksIdleness === true ? await idlenessOfScenario(plan, plan.seed) : null
  const sampler = new SeriesSampler(job.seriesRows)
  const stopwatch = createStopwatch()
  const takeTiming = startTiming(stopwatch)
  let beats = 0
  let recorder: ResidencyRecorder | null = null
  const { result, operatorFaults } = await runScenario(scenario, identity, {
    ...chosen,
    expectedTasks,
    sampler,
    onStarted: (world) => (recorder = new ResidencyRecorder(world)),
    stopwatch,
    onProgress: (fraction) => {
      beats += 1
      if (beats * STEPS_PER_BEAT > LIMITS.steps)
        throw new LimitReached(`The run exceeded the limit of ${LIMITS.steps} events.`)
      onProgress(fraction)
    },
    ...(scenario.operator.length === 0
      ? {}
      : { openOperatorClient: (await import('../../runs/operator-client.ts')).openOperatorClient }),
  })
  const timing = takeTiming()
  const residency = (recorder as ResidencyRecorder | null)?.finish()
  if (residency === undefined) throw new Error('the run ended without a start')
  return { result, series: columnsOf(sampler.csv()), residency, idleness, timing, operatorFaults }
}

/** Returns the rows of series.csv as columns over x: seconds since the start, at the end of each interval. */
export function columnsOf(csv: string): SimulationSeries {
  const [head = '', ...lines] = csv.trimEnd().split('\n')
  const [, ...names] = head.split(',')
  const rows = lines.map((line) => line.split(',').map(Number))
  return {
    x: rows.map(([at = 0]) => at),
    columns: names.map((name, index) => ({ name, values: rows.map((row) => row[index + 1] as number) })),
  }
}
