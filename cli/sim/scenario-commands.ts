/** `headroom sim validate` and `sim schema`. What one does is loaded when it is called. */
import type { Command } from 'commander'
import { type SetExit, withExamples } from '../command-shape.ts'
import type { SimValidateOptions } from './sim-validate.ts'

export function addScenarioCommands(sim: Command, setExit: SetExit): void {
  const validate = sim
    .command('validate')
    .description(
      'hold scenario files against the format: every problem with its line, column and the nearest name; nothing is run',
    )
    .argument('[files...]', 'scenarios; else all in scenarios/ and its folders')
    .option('--json', 'as JSON on stdout')
    .action(async (files: string[], options: SimValidateOptions) => {
      const { simValidate } = await import('./sim-validate.ts')
      setExit(await simValidate(files, options))
    })
  withExamples(
    validate,
    'headroom sim validate mine.scenario.yaml',
    'headroom sim validate mine.scenario.yaml --json',
  )
  const schema = sim
    .command('schema')
    .description(
      'the JSON Schema (2020-12) of scenario files, for editors and other programs; scenarios/scenario.schema.json is the same',
    )
    .action(async () => {
      const { simSchema } = await import('./sim-validate.ts')
      setExit(simSchema())
    })
  withExamples(schema, 'headroom sim schema > scenario.schema.json')
}
