/** Which runs a sweep is made of: from the options, and from what the scenario itself wants to be swept. */
import { DEFAULT_CONFIG } from '../../controller/domain/config.ts'
import { overridesOf, sweepJobs, sweepSize } from '../../simulator/sweep.ts'
import type { Settings, SweepAxis, SweepJob } from '../../simulator/sweep.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { UsageError } from '../exit-codes.ts'
import { readRunInput } from '../run-input.ts'
import type { Fingerprints, RunInput } from '../run-input.ts'

export interface SweepRequest {
  readonly overcommit?: readonly number[]
  readonly seeds?: readonly number[]
  /** Fields beside the percentage; they take the place of the same fields in the scenario's sweep. */
  readonly set?: readonly SweepAxis[]
}

/** All runs of one setting of the fields beside the percentage. */
export interface SweepPoint {
  readonly settings: Settings
  readonly input: RunInput
}

export interface SweepPlan {
  readonly name: string
  readonly jobs: readonly SweepJob[]
  readonly points: readonly SweepPoint[]
  readonly pointOf: (job: SweepJob) => SweepPoint
}

const MAX_RUNS = 100_000
const PERCENTAGE = 'default_vram_overcommit_percent'

/** Throws UsageError, and ScenarioError for a value that a field cannot have. */
export async function planSweep(file: string, request: SweepRequest): Promise<SweepPlan> {
  const fingerprints: Fingerprints = new Map()
  const { scenario } = await readRunInput(file, [], fingerprints)
  const axes = axesOf(scenario, request.set ?? [])
  const percentages = percentagesOf(scenario, request, axes.length > 0)
  const seeds = request.seeds ?? scenario.sweep?.seeds ?? [scenario.seed]
  const size = sweepSize(percentages, seeds, axes)
  if (size > MAX_RUNS) throw new UsageError(`--overcommit, --seeds and --set make ${size} runs; allowed are ${MAX_RUNS}`)
  const jobs = sweepJobs(percentages, seeds, axes)
  const points = new Map<Settings, SweepPoint>()
  for (const { settings } of jobs) {
    if (points.has(settings)) continue
    points.set(settings, { settings, input: await readRunInput(file, overridesOf(settings), fingerprints) })
  }
  return { name: scenario.name, jobs, points: [...points.values()], pointOf: ({ settings }) => points.get(settings) as SweepPoint }
}

/** What the options say comes last, so that it changes first. */
function axesOf({ sweep }: Scenario, set: readonly SweepAxis[]): SweepAxis[] {
  const named = new Set<string>()
  for (const { field } of set) {
    if (field === `config.${PERCENTAGE}`) throw new UsageError(`--set ${field}: this one is swept with --overcommit A..B:STEP`)
    if (named.has(field)) throw new UsageError(`--set ${field}: it is there twice; give all its values at once`)
    named.add(field)
  }
  const own = (sweep?.fields ?? [])
    .filter(({ field }) => field !== PERCENTAGE)
    .map(({ field, values }): SweepAxis => ({ field: `config.${field}`, values }))
  return [...own.filter(({ field }) => !named.has(field)), ...set]
}

/** The option, or the scenario's sweep, or, when something else is swept, the percentage that the scenario has. */
function percentagesOf({ sweep, config }: Scenario, { overcommit }: SweepRequest, isOtherSwept: boolean): readonly number[] {
  if (overcommit !== undefined) return overcommit
  const values = sweep?.fields.find(({ field }) => field === PERCENTAGE)?.values ?? []
  if (values.length > 0) return values.filter((value) => typeof value === 'number')
  if (isOtherSwept) return [config[PERCENTAGE] ?? DEFAULT_CONFIG[PERCENTAGE]]
  throw new UsageError('which percentages? Add --overcommit A..B:STEP, or a sweep to the scenario')
}
