import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { WAIT_REASONS } from '../../controller/query/explain/explain.ts'
import { VICTIM_STANDINGS } from '../../controller/query/explain/explain-victim.ts'
import { CHANGES } from '../../controller/api/observe/explanation-schema.ts'
import { DECISION_KINDS, DECISION_RULES, VICTIM_LEVELS } from '../../controller/model/decision.ts'

test('docs/explain.md has a row for every reason, change, verdict, rule and level', () => {
  const page = readFileSync(new URL('../../docs/explain.md', import.meta.url), 'utf8')
  const words = [
    WAIT_REASONS,
    VICTIM_STANDINGS,
    CHANGES,
    DECISION_KINDS,
    DECISION_RULES,
    VICTIM_LEVELS,
  ].flat()
  expect(words.filter((word) => !page.includes(`| \`${word}\` |`))).toEqual([])
})
