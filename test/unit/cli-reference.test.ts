import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CLI_DOCS, withReference } from '../../tools/reference/cli-reference.ts'

test('docs/cli.md is up to date with the commands', async () => {
  const page = readFileSync(CLI_DOCS, 'utf8')
  expect(
    page === (await withReference(page)),
    'docs/cli.md is out of date: run `node tools/reference/cli-reference.ts`',
  ).toBe(true)
})
