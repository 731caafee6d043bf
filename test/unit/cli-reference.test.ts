import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { OUTPUT_FORMATS } from '../../cli/output/table.ts'
import { FORMATS } from '../../cli/command/command-shape.ts'
import { DECISION_KINDS } from '../../cli/events/commands.ts'
import { TASK_STATE_FILTERS } from '../../cli/tasks/commands.ts'
import { DECISION_KINDS as KINDS_OF_DECISIONS } from '../../controller/model/decision.ts'
import { TASK_STATE_FILTERS as STATES_OF_THE_API } from '../../controller/api/tasks/schema.ts'
import { CLI_DOCS, withReference } from '../../tools/reference/cli-reference.ts'

test('docs/cli.md is up to date with the commands', () => {
  const page = readFileSync(CLI_DOCS, 'utf8')
  expect(
    page === withReference(page),
    'docs/cli.md is out of date: run `node tools/reference/cli-reference.ts`',
  ).toBe(true)
})

test('Values that are declared twice to keep --help fast are equal', () => {
  expect(FORMATS).toEqual(OUTPUT_FORMATS)
  expect(TASK_STATE_FILTERS).toEqual(STATES_OF_THE_API)
  expect(DECISION_KINDS).toEqual(KINDS_OF_DECISIONS)
})
