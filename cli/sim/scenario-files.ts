/** The default scenarios of commands. */
import { existsSync, globSync } from 'node:fs'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { expectedFileOf } from '../../services/runs/check-run.ts'
import { UsageError } from '../../services/exit-codes.ts'

const SCENARIO_FILES = 'scenarios/**/*.scenario.yaml'

/** Returns all in scenarios/ and its folders, by name. Throws UsageError without one. */
export function scenarioFiles(): string[] {
  const files = globSync(SCENARIO_FILES).sort((a, b) => (a < b ? -1 : 1))
  if (files.length === 0) throw new UsageError(`no ${SCENARIO_FILES} found here: specify the scenarios`)
  return files
}

/** Returns those with assertions or a recorded digest; the others are demonstrations. */
export function checkedScenarioFiles(): string[] {
  const files = scenarioFiles().filter((file) => existsSync(expectedFileOf(file)) || assertsSomething(file))
  if (files.length === 0)
    throw new UsageError(
      `no ${SCENARIO_FILES} here has assertions or a recorded digest: specify the ` + `scenarios to check`,
    )
  return files
}

function assertsSomething(file: string): boolean {
  const { always, eventually, sometimes, final } = loadScenario(file).scenario.assertions
  return always.length + eventually.length + sometimes.length + final.length > 0
}
