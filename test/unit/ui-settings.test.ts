/** How the settings page uses the API description, and how it parses typed values. */
import { beforeAll, describe, expect, test } from 'vitest'
import { CONFIG_RULES, DEFAULT_CONFIG } from '../../controller/model/config.ts'
import {
  differences,
  fieldsOf,
  groupsOf,
  isLowering,
  readField,
  rangeOf,
  titleOf,
  type FieldInfo,
  type FieldName,
  type OpenApi,
} from '../../ui/format/config-fields.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'

let fields: readonly FieldInfo[]
const field = (name: string): FieldInfo => fields.find((each) => each.name === name) as FieldInfo

beforeAll(async () => {
  const api = await apiClient(new FakeController())
  fields = fieldsOf((await api.send('GET', '/openapi.json')).body as OpenApi)
  await api.app.close()
})

test('The fields are those of the configuration, with their ranges and defaults', () => {
  expect(fields.map(({ name }) => name)).toEqual(Object.keys(CONFIG_RULES))
  for (const { name, byDefault, min, max, choices, isNullable, meaning } of fields) {
    const rule = CONFIG_RULES[name]
    expect([name, byDefault]).toEqual([name, DEFAULT_CONFIG[name]])
    expect([name, meaning.length > 10]).toEqual([name, true])
    if (rule.kind === 'choice') expect(choices).toEqual(rule.choices)
    else expect([choices, min, max, isNullable]).toEqual([null, rule.min, rule.max, rule.nullable])
  }
})

test('Every field is in one group, and a field that the page does not know is in the last one', () => {
  const groups = groupsOf(fields)
  expect(groups.flatMap((group) => group.fields)).toHaveLength(fields.length)
  expect(groups.map(({ name }) => name)).not.toContain('Other')
  const unknown = { ...field('max_requeues'), name: 'of_a_newer_controller' as FieldName }
  expect(groupsOf([...fields, unknown]).at(-1)).toEqual({ name: 'Other', fields: [unknown] })
  expect(titleOf(unknown.name)).toBeNull()
})

test('The title of a field has the unit of its name, and its range lists its choices', () => {
  const units = { _seconds: '(s)', _mib: '(MiB)', _percent: '(%)' }
  for (const { name } of fields) {
    const title = titleOf(name) ?? ''
    for (const [ending, unit] of Object.entries(units))
      expect(title.endsWith(unit), `${name}: ${title}`).toBe(title !== '' && name.endsWith(ending))
  }
  expect(rangeOf(field('placement_strategy'))).toMatch(/^one of \w+(, \w+)+$/)
})

describe('a typed setting', () => {
  test.each(['1001', '-1', '−1', '1.5', '', ' ', 'abc', '1e2', '0x10', '٣', 'NaN'])(
    '%j is not a valid percentage',
    (text) => {
      const percent = field('default_vram_overcommit_percent')
      expect(readField(percent, text)).toEqual({ ok: false, why: `Enter ${rangeOf(percent)}.` })
    },
  )

  test.each([
    ['default_vram_overcommit_percent', '0', 0],
    ['default_vram_overcommit_percent', ' 1000 ', 1000],
    ['max_residency_seconds', '', null],
    ['placement_strategy', 'spread', 'spread'],
  ])('%s: %j is parsed as %j', (name, text, value) => {
    expect(readField(field(name), text)).toEqual({ ok: true, value })
  })

  test('is refused if it is an unknown choice', () => {
    expect(readField(field('placement_strategy'), 'worst_fit').ok).toBe(false)
  })
})

test('differs only in changed settings, and a lower value is recognized', () => {
  const changes = differences(
    { a: 1, b: null, source: 'environment', revision: 0 },
    { a: 2, b: null, source: 'persisted', revision: 1 },
  )
  expect(changes).toEqual([{ name: 'a', before: 1, after: 2 }])
  const percent = (before: number, after: number) => [
    { name: 'default_vram_overcommit_percent' as const, before, after },
  ]
  expect([isLowering(percent(50, 20)), isLowering(percent(20, 50)), isLowering([])]).toEqual([
    true,
    false,
    false,
  ])
  expect(isLowering([{ name: 'safety_reserve_mib', before: 1, after: 2 }])).toBe(true)
})
