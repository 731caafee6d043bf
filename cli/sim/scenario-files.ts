/** The scenarios that a command takes when none is named. */
import { existsSync, globSync } from 'node:fs'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { expectedFileOf } from './check-run.ts'
import { UsageError } from '../exit-codes.ts'

export const SCENARIO_FILES = 'scenarios/**/*.scenario.yaml'

/** All in scenarios/ and its folders, by name. Throws UsageError when there is none. */
export function scenarioFiles(): string[] {
  const files = globSync(SCENARIO_FILES).sort((a, b) => (a < b ? -1 : 1))
  if (files.length === 0) throw new UsageError(`no ${SCENARIO_FILES} here: name the scenarios`)
  return files
}

/**
 * Those that assert something or have a recorded digest: the others (a demonstration, say) are there to be
 * looked at.
 */
export function checkedScenarioFiles(): string[] {
  const files = scenarioFiles().filter((file) => existsSync(expectedFileOf(file)) || assertsSomething(file))
  if (files.length === 0)
    throw new UsageError(`no ${SCENARIO_FILES} here asserts anything: name the scenarios to check`)
  return files
}

function assertsSomething(file: string): boolean {
  const { always, eventually, sometimes, final } = loadScenario(file).scenario.assertions
  return always.length + eventually.length + sometimes.length + final.length > 0
}
