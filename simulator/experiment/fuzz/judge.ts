/** Runs one scenario and returns its violations, coverage and digest. */
import type { GpuReading } from '../../../controller/query/cluster-reading.ts'
import type { Mib } from '../../../protocol/units.ts'
import { createChecker, type Checker } from '../../check/checker.ts'
import { describeViolation, type Violation } from '../../check/violation.ts'
import { runScenario, type OpenOperatorClient } from '../../run/run.ts'
import type { Scenario } from '../../scenario/scenario.ts'
import type { World } from '../../world/world.ts'
import { Coverage, type Counts } from './coverage.ts'
import { Overrun, Soundness, type Bounds } from './soundness.ts'

export interface Verdict {
  /** Digest of the journal; null if the run was aborted. */
  readonly digest: string | null
  /** The first violation of each kind, in order. */
  readonly violations: readonly Finding[]
  readonly counts: Counts
  readonly steps: number
}

/** A violation: the rule, and a sentence with the figures. */
export interface Finding {
  readonly rule: string
  readonly sentence: string
}

const HOUR = 3_600_000
/**
 * Without faults there are few steps between two events; with faults, every heartbeat is sent. Two tasks that
 * take turns through slow swaps need hours: seed 3192181033 ends after 14,412,728 ms.
 */
const CALM_BOUNDS: Bounds = { steps: 150_000, virtualMs: 72 * HOUR }
const FAULTY_BOUNDS: Bounds = { steps: 150_000, virtualMs: 12 * HOUR }
/** Longer than any waiting time that is drawn. */
const QUIET_MS = 6 * HOUR
const IDENTITY = { scenarioSha256: null, traceSha256: null, version: 'fuzz' }

interface Seen {
  readonly world: World
  readonly checker: Checker
  readonly soundness: Soundness
  readonly coverage: Coverage
}

/** @param bounds replaces the default bounds */
export async function judge(
  scenario: Scenario,
  openOperatorClient: OpenOperatorClient,
  bounds: Bounds = boundsOf(scenario),
): Promise<Verdict> {
  const isCalm = scenario.faults.length === 0
  let seen: Seen | null = null
  const watch = (world: World) => {
    const checker = createChecker(world, scenario.assertions)
    const soundness = new Soundness(world, bounds, isCalm)
    const coverage = new Coverage(world)
    seen = { world, checker, soundness, coverage }
    if (world.faults !== null)
      world.bus.watch({
        answered: (asked, answer) => {
          soundness.answered(asked, answer)
          coverage.answered(asked, answer)
        },
      })
    return {
      afterStep: () => {
        checker.afterStep()
        soundness.afterStep()
        coverage.afterStep()
      },
    }
  }
  const broken: Violation[] = []
  let digest: string | null = null
  let unexpected: readonly string[] = []
  try {
    const run = await runScenario(scenario, IDENTITY, { watch, openOperatorClient, quietMs: QUIET_MS })
    digest = run.result.digest
    unexpected = run.operatorFaults
    if (run.isQuiet) broken.push(...whatIsStuck(run.world))
    const { checker, soundness } = seen as unknown as Seen
    soundness.finish()
    checker.finish(run.result.metrics)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    broken.push(brokenBy(error, seen))
  }
  const verdict = verdictOf(seen, broken, digest)
  const answers = unexpected.slice(0, 1).map((sentence): Finding => ({ rule: 'operator_answer', sentence }))
  return { ...verdict, violations: [...verdict.violations, ...answers] }
}

function boundsOf({ faults }: Scenario): Bounds {
  return faults.length === 0 ? CALM_BOUNDS : FAULTY_BOUNDS
}

function brokenBy(error: Error, seen: Seen | null): Violation {
  const at = seen?.world.clock.now() ?? 0
  if (error instanceof Overrun) return { assertion: 'ends', at, detail: `${error.message}${openTasks(seen)}` }
  return { assertion: 'invariant', at, detail: error.stack ?? error.message }
}

/**
 * In a run that nothing changes any more. Pending tasks have a rule of their own; a task cannot return to a
 * GPU whose settings leave it too little VRAM.
 */
function whatIsStuck(world: World): readonly Violation[] {
  const stuck = [...world.controller.views.openTasks()].filter(
    ({ placement }) =>
      placement !== null &&
      !(
        placement.residency === 'swapped_out' &&
        placement.gpus.some((gpu) => isTooSmall(gpu, placement.demandMib - placement.residualMib))
      ),
  )
  return stuck.map(({ spec, state, placement }) => ({
    assertion: 'ends',
    at: world.clock.now(),
    taskId: spec.id,
    detail: `nothing has happened for ${QUIET_MS / HOUR} hours; it is ${state} and ${placement?.residency}`,
  }))
}

function isTooSmall(
  { capacityMib, noswapMib }: Pick<GpuReading, 'capacityMib' | 'noswapMib'>,
  needMib: Mib,
): boolean {
  return needMib > capacityMib - noswapMib
}

function openTasks(seen: Seen | null): string {
  if (seen === null) return ''
  const open = [...seen.world.controller.views.openTasks()].slice(0, 5)
  return open
    .map(
      ({ spec, state, placement }) =>
        `; ${spec.id} is ${state}${placement === null ? '' : ` and ${placement.residency}`}`,
    )
    .join('')
}

function verdictOf(seen: Seen | null, broken: readonly Violation[], digest: string | null): Verdict {
  if (seen === null) return { digest, violations: broken.map(findingOf), counts: {}, steps: 0 }
  const { world, checker, soundness, coverage } = seen
  const found = [...checker.violations, ...soundness.violations].toSorted((a, b) => a.at - b.at)
  const firsts = new Map<string, Violation>()
  for (const violation of [...found, ...broken])
    if (!firsts.has(violation.assertion)) firsts.set(violation.assertion, violation)
  return {
    digest,
    violations: [...firsts.values()].map(findingOf),
    counts: coverage.counts(),
    steps: world.clock.steps,
  }
}

function findingOf(violation: Violation): Finding {
  return { rule: violation.assertion, sentence: describeViolation(violation) }
}
