/** One scenario of `sim check`, run in a worker process. */
import { existsSync, readFileSync } from 'node:fs'
import { createChecker } from '../../simulator/check/checker.ts'
import type { Checker } from '../../simulator/check/checker.ts'
import { describeViolation } from '../../simulator/check/violation.ts'
import type { RunResult } from '../../simulator/results/result.ts'
import type { StepObserver } from '../../simulator/run/run-loop.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import type { World } from '../../simulator/world/world.ts'
import { isUsageError, UsageError } from '../exit-codes.ts'
import { readRunInput } from './run-input.ts'
import type { RunInput } from './run-input.ts'

/** Same limit as for a run over REST. */
const MAX_TASKS = 2_000_000

export interface CheckTask {
  readonly file: string
}

export interface CheckAnswer {
  readonly file: string
  readonly scenario: string
  /** Null when the run was aborted. */
  readonly result: RunResult | null
  /** Violations as text. */
  readonly violations: readonly string[]
  /** Null: none is recorded. */
  readonly expected: ExpectedResult | null
}

/** `<name>.expected.json`: the digest decides; the rest shows a reader what changed. */
export type ExpectedResult = Pick<RunResult, 'digest' | 'virtual_s' | 'metrics'>

export async function runCheckTask(
  { file }: CheckTask,
  onProgress: (fraction: number) => void,
): Promise<CheckAnswer> {
  const input = await readRunInput(file)
  if (input.expectedTasks > MAX_TASKS) return tooLarge(file, input)
  const { result, violations } = await runChecked(file, input, onProgress)
  return { file, scenario: input.scenario.name, result, violations, expected: readExpected(file) }
}

/** A run of years would seem to hang. */
function tooLarge(file: string, { scenario, expectedTasks }: RunInput): CheckAnswer {
  const count = (tasks: number): string => Math.ceil(tasks).toLocaleString('en-US')
  const why =
    `it has about ${count(expectedTasks)} tasks, and a check runs at most ${count(MAX_TASKS)}. Lower ` +
    `clock.until, or run a part: headroom sim run ${file} --until 1d`
  return { file, scenario: scenario.name, result: null, violations: [why], expected: null }
}

export function expectedFileOf(file: string): string {
  return `${file.replace(/\.scenario\.ya?ml$/, '')}.expected.json`
}

export function expectedOf({ digest, virtual_s, metrics }: RunResult): ExpectedResult {
  return { digest, virtual_s, metrics }
}

/**
 * An error inside a run (an assertion or an invariant that throws) is a violation at its instant; an unusable
 * trace is thrown.
 */
async function runChecked(
  file: string,
  { scenario, identity, expectedTasks }: RunInput,
  onProgress: (fraction: number) => void,
): Promise<Pick<CheckAnswer, 'result' | 'violations'>> {
  let seen: { readonly world: World; readonly checker: Checker } | null = null
  const watch = (world: World): StepObserver => {
    const checker = checkerOf(file, world, scenario)
    seen = { world, checker }
    return checker
  }
  try {
    const run = await runScenario(scenario, identity, {
      expectedTasks,
      onProgress,
      watch,
      ...(scenario.operator.length === 0
        ? {}
        : { openOperatorClient: (await import('./operator-client.ts')).openOperatorClient }),
    })
    const { checker } = seen as unknown as { readonly checker: Checker }
    return {
      result: run.result,
      violations: [...run.operatorFaults, ...checker.finish(run.result.metrics).map(describeViolation)],
    }
  } catch (error) {
    if (isUsageError(error) || !(error instanceof Error)) throw error
    const world = (seen as { readonly world: World } | null)?.world
    return {
      result: null,
      violations: [
        `at ${world === undefined ? 'the start' : formatDuration(world.nowMs)}: ` +
          `${error.stack ?? error.message}`,
      ],
    }
  }
}

/** An assertion on a number that is not in the result is a mistake in the file. */
function checkerOf(file: string, world: World, { assertions }: Scenario): Checker {
  try {
    return createChecker(world, assertions)
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(`${file}: ${error.message}`, { cause: error }) : error
  }
}

function readExpected(file: string): ExpectedResult | null {
  const path = expectedFileOf(file)
  if (!existsSync(path)) return null
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ExpectedResult
  } catch (error) {
    throw new UsageError(`${path}: cannot be read: ${(error as Error).message}`, { cause: error })
  }
}
