import { globSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { scenarioJsonSchema } from '../../simulator/scenario/schema.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'

const RUNS = 1000
const isValid = new Ajv2020({ strict: false }).compile(scenarioJsonSchema())
const scenarios = globSync('scenarios/**/*.scenario.yaml')
  .sort((a, b) => (a < b ? -1 : 1))
  .map((file) => ({ value: parse(readFileSync(file, 'utf8')) as unknown, baseDir: dirname(resolve(file)) }))

const VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    0.5,
    1,
    2,
    7,
    1e12,
    '',
    'x',
    '1h',
    '-1h',
    '1.5h',
    '90',
    '2Gi',
    '1..3',
    '3..1x',
    'best_fit',
    'serving',
    'heal',
  ],
  ...[
    [],
    [1],
    ['1s', 5],
    {},
    { 1: 1 },
    { x: 1 },
    { uniform: { min: 1, max: 2 } },
    { lognormal: { median: '1h', sigma: 1 } },
    { mean: '1h' },
  ],
]
const KEYS = [
  'at',
  'name',
  'until',
  'gpus',
  'vram_mib',
  'expect',
  'count',
  'kind',
  'sed',
  'Vram_Mib',
  'x',
  'crash',
  'for',
  'task',
  'trace',
]

/** One random change: another value, an added key, a removed key, or a renamed key. */
const mutation = fc.record({
  where: fc.array(fc.nat(1000), { maxLength: 6 }),
  what: fc.constantFrom('replace', 'add', 'remove', 'rename'),
  value: fc.constantFrom(...VALUES),
  key: fc.constantFrom(...KEYS),
})

it('A scenario that the schema refuses is also refused by the loader', () => {
  let refused = 0
  let taken = 0
  fc.assert(
    fc.property(
      fc.nat(scenarios.length - 1),
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      (index, mutations) => {
        const { value, baseDir } = scenarios[index] as (typeof scenarios)[number]
        const mutated = mutations.reduce((before, each) => mutate(before, each.where, each), value)
        const isLoaded = loads(JSON.stringify(mutated), baseDir)
        if (isValid(mutated)) taken += 1
        else {
          refused += 1
          expect(isLoaded, JSON.stringify(isValid.errors?.slice(0, 3))).toBe(false)
        }
      },
    ),
    { numRuns: RUNS },
  )
  // Most mutations are invalid and some are valid, so both cases occur.
  expect(refused).toBeGreaterThan(RUNS / 2)
  expect(taken).toBeGreaterThan(RUNS / 50)
})

function loads(text: string, baseDir: string): boolean {
  try {
    loadScenario({ text, baseDir })
    return true
  } catch (error) {
    if (error instanceof ScenarioError) return false
    throw error
  }
}

type Mutation = { readonly what: string; readonly value: unknown; readonly key: string }

/** A changed copy: `where` selects a member at each level, until its end or a leaf. */
function mutate(value: unknown, where: readonly number[], mutation: Mutation): unknown {
  if (typeof value !== 'object' || value === null) return mutation.value
  const keys = Object.keys(value)
  const [next, ...deeper] = where
  if (next !== undefined && keys.length > 0) {
    const key = keys[next % keys.length] as string
    return withMember(value, key, mutate((value as Readonly<Record<string, unknown>>)[key], deeper, mutation))
  }
  return changed(value, keys, mutation)
}

function changed(value: object, keys: readonly string[], { what, value: other, key }: Mutation): unknown {
  if (what === 'replace') return other
  if (Array.isArray(value)) return what === 'remove' ? value.slice(1) : [...(value as unknown[]), other]
  if (what === 'add') return { ...value, [key]: other }
  const [first, ...rest] = Object.entries(value)
  if (first === undefined || keys.length === 0) return value
  return Object.fromEntries(what === 'remove' ? rest : [[key, first[1]], ...rest])
}

function withMember(value: object, key: string, member: unknown): unknown {
  if (!Array.isArray(value)) return { ...value, [key]: member }
  return value.map((item: unknown, index) => (String(index) === key ? member : item))
}
