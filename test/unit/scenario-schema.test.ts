import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { jsonSchemaOf } from '../../simulator/document/json-schema.ts'
import type { JsonSchema } from '../../simulator/document/json-schema.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Rule } from '../../simulator/document/rule.ts'
import { scenarioJsonSchema, scenarioRule } from '../../simulator/scenario/schema.ts'
import { writtenDefault, writtenValue } from '../../simulator/document/written-value.ts'
import {
  FORMAT_DOCS,
  HOW_TO_MAKE,
  INDEX,
  SCHEMA_FILE,
  schemaText,
  withFields,
  withIndex,
} from '../../tools/reference/scenario-reference.ts'

const files = globSync('scenarios/**/*.scenario.yaml').sort((a, b) => (a < b ? -1 : 1))
const validate = new Ajv2020({
  strict: true,
  strictRequired: false,
  allErrors: true,
  allowUnionTypes: true,
}).compile(scenarioJsonSchema())

describe('the published schema', () => {
  it('is up to date with the rules', () => {
    expect(
      readFileSync(SCHEMA_FILE, 'utf8') === schemaText(),
      `${SCHEMA_FILE} is out of date: run \`${HOW_TO_MAKE}\``,
    ).toBe(true)
  })

  it.each(files)('accepts %s, which names the schema for editors', (file) => {
    const text = readFileSync(file, 'utf8')
    validate(parse(text))
    expect(validate.errors ?? []).toEqual([])
    const named = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1]
    expect(resolve(dirname(file), named ?? ''), 'its first line').toBe(SCHEMA_FILE)
  })

  it('describes every field, and states its default if there is one', () => {
    const fields = fieldsIn(scenarioRule, '')
    expect(fields.length).toBeGreaterThan(120)
    for (const { path, schema, field } of fields) {
      expect(schema['description'], path).toMatch(/\w{2}.*\.$/)
      expect(schema['default'], path).toEqual(writtenDefault(field))
    }
  })

  it('has only defaults that their own field accepts', () => {
    const ajv = new Ajv2020({ strict: false, validateSchema: false })
    const withDefault = fieldsIn(scenarioRule, '').filter(
      ({ schema }) => (schema['default'] ?? null) !== null,
    )
    expect(withDefault.length).toBeGreaterThan(30)
    for (const { path, schema } of withDefault)
      expect(ajv.validate(schema, schema['default']), path).toBe(true)
  })
})

describe('docs/scenario-format.md', () => {
  it('has tables that are up to date with the rules', () => {
    const page = readFileSync(FORMAT_DOCS, 'utf8')
    expect(page === withFields(page), `docs/scenario-format.md is out of date: run \`${HOW_TO_MAKE}\``).toBe(
      true,
    )
  })

  it('begins with an example that loads', () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(readFileSync(FORMAT_DOCS, 'utf8'))?.[1] as string
    expect(loadScenario({ text: example, baseDir: '/' }).scenario.nodes).toHaveLength(2)
  })
})

/** The scenarios of a folder share a prefix that their files do not repeat. */
const PREFIXES: Readonly<Record<string, string>> = {
  capacity: 'capacity-',
  exercises: 'exercise-',
  fairness: 'fairness-',
  faults: 'fault-',
  operations: 'operations-',
  regressions: 'regression-',
}

describe('scenarios/README.md', () => {
  it('lists every scenario with its description', () => {
    const page = readFileSync(INDEX, 'utf8')
    expect(page === withIndex(page), `scenarios/README.md is out of date: run \`${HOW_TO_MAKE}\``).toBe(true)
    expect(files.length).toBeGreaterThanOrEqual(40)
    for (const file of files) {
      const { name, description } = loadScenario(file).scenario
      expect(name, file).toBe(`${PREFIXES[basename(dirname(file))] ?? ''}${basename(file, '.scenario.yaml')}`)
      expect(description?.length ?? 0, `${name}: its description`).toBeGreaterThan(80)
    }
  })
})

describe('a default value in the documentation', () => {
  it('is written as in a file', () => {
    expect(writtenValue({ kind: 'duration', min: 0, max: 1e9, bareMs: false }, 5_400_000)).toBe('90m')
    expect(writtenValue({ kind: 'duration', min: 0, max: 1e9, bareMs: false }, 0)).toBe(0)
    expect(writtenValue({ kind: 'instant' }, 1_767_225_600_000)).toBe('2026-01-01T00:00:00Z')
    const pair: Rule = {
      kind: 'pair',
      first: { kind: 'duration', min: 0, max: 1e9, bareMs: true },
      second: { kind: 'size', min: 1, max: 9 },
    }
    expect(writtenValue({ kind: 'list', item: pair, minItems: 0, maxItems: 9 }, [[1000, 5]])).toEqual([
      ['1s', 5],
    ])
    expect(writtenValue({ kind: 'nullable', rule: pair }, null)).toBeNull()
    const times: Rule = {
      kind: 'dictionary',
      key: /a/,
      keyWhat: 'a',
      value: pair.first,
      minKeys: 0,
      maxKeys: 9,
    }
    expect(writtenValue(times, { a: 60_000 })).toEqual({ a: '1m' })
  })
})

interface FoundField {
  readonly path: string
  readonly schema: JsonSchema
  readonly field: Parameters<typeof writtenDefault>[0]
}

/** Every field of every record, with its schema. */
function fieldsIn(rule: Rule, path: string): FoundField[] {
  if (rule.kind === 'nullable') return fieldsIn(rule.rule, path)
  if (rule.kind === 'list') return fieldsIn(rule.item, `${path}[]`)
  if (rule.kind === 'scalar_or') return fieldsIn(rule.collection, path)
  if (rule.kind === 'by_key' || rule.kind === 'by_value')
    return Object.entries(rule.records).flatMap(([key, record]) => fieldsIn(record, `${path}<${key}>`))
  if (rule.kind !== 'record') return []
  const { properties } = jsonSchemaOf(rule) as { readonly properties: Readonly<Record<string, JsonSchema>> }
  return Object.entries(rule.fields).flatMap(([key, field]) => [
    { path: `${path}.${key}`, schema: properties[key] as JsonSchema, field },
    ...fieldsIn(field.rule, `${path}.${key}`),
  ])
}
