/** `headroom sim validate` and `sim schema`. Their actions are loaded when called. */
import type { Command } from 'commander'
import { calls, type SetExit, withExamples } from '../command/command-shape.ts'

export function addScenarioCommands(sim: Command, setExit: SetExit): void {
  const validate = sim
    .command('validate')
    .description(
      'check scenario files: every problem with its line, column and the nearest name; runs nothing',
    )
    .argument('[files...]', 'scenarios; else all in scenarios/ and its folders')
    .option('--json', 'print JSON')
    .action(calls(setExit, () => import('./sim-validate.ts'), 'simValidate'))
  withExamples(
    validate,
    'headroom sim validate mine.scenario.yaml',
    'headroom sim validate mine.scenario.yaml --json',
  )
  const schema = sim
    .command('schema')
    .description(
      'print the JSON Schema (2020-12) of scenario files, for editors and other programs; equals ' +
        'scenarios/scenario.schema.json',
    )
    .action(calls(setExit, () => import('./sim-validate.ts'), 'simSchema'))
  withExamples(schema, 'headroom sim schema > scenario.schema.json')
}
