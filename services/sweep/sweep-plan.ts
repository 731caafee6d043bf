/**
 * The runs of `headroom sim sweep`, with the scenario of each combination of the fields other than the
 * percentage.
 */
import { overridesOf, sweepJobs } from '../../simulator/experiment/sweep/sweep.ts'
import type { Settings, SweepJob } from '../../simulator/experiment/sweep/sweep.ts'
import { sweepGrid } from '../../simulator/experiment/sweep/sweep-grid.ts'
import type { GridRefusal, SweepRequest } from '../../simulator/experiment/sweep/sweep-grid.ts'
import { UsageError } from '../exit-codes.ts'
import { readRunInput } from '../runs/run-input.ts'
import type { Fingerprints, RunInput } from '../runs/run-input.ts'

/** All runs of one setting of the fields other than the percentage. */
export interface SweepPoint {
  readonly settings: Settings
  readonly input: RunInput
}

export interface SweepPlan {
  readonly name: string
  /** At least one. */
  readonly jobs: readonly SweepJob[]
  readonly points: readonly SweepPoint[]
  readonly pointOf: (job: SweepJob) => SweepPoint
}

const MAX_RUNS = 100_000

/** Throws UsageError, and ScenarioError for an invalid value of a field. */
export async function planSweep(file: string, request: SweepRequest): Promise<SweepPlan> {
  const fingerprints: Fingerprints = new Map()
  const { scenario } = await readRunInput(file, [], fingerprints)
  const outcome = sweepGrid(scenario, request, MAX_RUNS)
  if (!outcome.ok) throw new UsageError(optionProblem(outcome.refusal))
  const { percentages, seeds, axes } = outcome.grid
  const jobs = sweepJobs(percentages, seeds, axes)
  const points = new Map<Settings, SweepPoint>()
  for (const { settings } of jobs) {
    if (points.has(settings)) continue
    points.set(settings, { settings, input: await readRunInput(file, overridesOf(settings), fingerprints) })
  }
  return {
    name: scenario.name,
    jobs,
    points: [...points.values()],
    pointOf: ({ settings }) => points.get(settings) as SweepPoint,
  }
}

function optionProblem(refusal: GridRefusal): string {
  switch (refusal.kind) {
    case 'percentage_as_field':
      return `--set ${refusal.field}: use --overcommit A..B:STEP for this field`
    case 'field_twice':
      return `--set ${refusal.field}: specified twice; specify all its values at once`
    case 'no_percentages':
      return 'no percentages: add --overcommit A..B:STEP, or a sweep to the scenario'
    case 'too_many_runs':
      return `--overcommit, --seeds and --set result in ${refusal.runs} runs; the limit is ${refusal.max}`
  }
}
