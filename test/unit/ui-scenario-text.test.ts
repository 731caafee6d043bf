/**
 * A form for a scenario's text: it changes only the edited value, and every result is a scenario that the
 * controller can read.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { describe, expect, test } from 'vitest'
import {
  FIRST_SCENARIO,
  FLEET_FIELDS,
  GENERAL_FIELDS,
  NEW_ENTRIES,
  WORKLOAD_FIELDS,
} from '../../ui/scenario/form-fields.ts'
import {
  isJson,
  lengthAt,
  MAX_FORM_CHARACTERS,
  readScenarioText,
  valueAt,
  withEntry,
  withoutEntry,
  withValue,
  type Path,
  type ScenarioText,
} from '../../ui/scenario/scenario-text.ts'
import { withoutValue } from '../../ui/scenario/without-value.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'

const TEXT = `# what it is for
scenario: two   # a name
version: 1
description: >
  Folded,
  over two lines.

fleet:
  # the large ones
  - { name: "a-{i}", count: 2, gpu: { vram_mib: 40Gi } }   # both
  - name: b
    gpu:
      vram_mib: 24000
workload:
  - { generate: poisson, rate_per_hour: 12, count: 9, vram_mib: 18Gi,
      duration: { lognormal: { median: 20m, sigma: 1 } } }
assert: { always: [single_run] }
`

function read(text: string): ScenarioText {
  const scenario = readScenarioText(text)
  if (scenario === null) throw new Error(`the form cannot read ${text}`)
  return scenario
}

/** Lines that only the first text has, in order. */
function linesOnlyIn(text: string, other: string): readonly string[] {
  const known = other.split('\n')
  return text.split('\n').filter((line) => !known.includes(line))
}

const changed = (path: Path, value: string, text = TEXT): string =>
  withValue(read(text), path, value) ?? 'null'
const problemsOf = (text: string): unknown => loadScenario({ text, baseDir: '.' }).scenario

describe('a value in the scenario form', () => {
  test.each([
    [['scenario'], 'three', ['scenario: three   # a name']],
    [['seed'], '7', ['seed: 7']],
    [['clock', 'until'], '6h', ['clock: { until: 6h }']],
    [
      ['config', 'default_vram_overcommit_percent'],
      '150',
      ['config: { default_vram_overcommit_percent: 150 }'],
    ],
    [['fleet', 0, 'count'], '3', ['  - { name: "a-{i}", count: 3, gpu: { vram_mib: 40Gi } }   # both']],
    [['fleet', 0, 'name'], 'c-{i}', ['  - { name: "c-{i}", count: 2, gpu: { vram_mib: 40Gi } }   # both']],
    [
      ['fleet', 0, 'gpu', 'model'],
      'A100 40',
      ['  - { name: "a-{i}", count: 2, gpu: { vram_mib: 40Gi, model: "A100 40" } }   # both'],
    ],
    [['fleet', 1, 'gpus'], '4', ['    gpus: 4']],
    [['fleet', 1, 'gpu', 'vram_mib'], '32Gi', ['      vram_mib: 32Gi']],
    [
      ['workload', 0, 'duration', 'lognormal', 'median'],
      '30m',
      ['      duration: { lognormal: { median: 30m, sigma: 1 } } }'],
    ],
  ] as const)('at %j becomes %s, and nothing else changes', (path, value, lines) => {
    const text = changed(path, value)
    expect(linesOnlyIn(text, TEXT)).toEqual(lines)
    expect(linesOnlyIn(TEXT, text).length).toBeLessThanOrEqual(1)
    expect(valueAt(read(text), path)).toBe(value)
    expect(() => problemsOf(text)).not.toThrow()
  })

  test('is quoted so that it is read as typed', () => {
    for (const value of [
      'true',
      'null',
      '1e3',
      '012',
      '{i}',
      'a: b',
      '# x',
      '"',
      "it's",
      '*x',
      '&x',
      '- x',
      '1:30',
    ]) {
      expect(valueAt(read(changed(['scenario'], value)), ['scenario']), value).toBe(value)
    }
    expect(parse(changed(['seed'], '7')) as object).toMatchObject({ seed: 7 })
  })

  test('is added to JSON as JSON', () => {
    const json = JSON.stringify({
      scenario: 'j',
      version: 1,
      fleet: [{ name: 'a', gpu: { vram_mib: 1 } }],
      workload: [],
    })
    const text = changed(
      ['clock', 'until'],
      '6h',
      changed(['fleet', 0, 'gpu', 'model'], 'X', changed(['scenario'], 'k', json)),
    )
    expect(JSON.parse(text)).toEqual({
      scenario: 'k',
      version: 1,
      fleet: [{ name: 'a', gpu: { vram_mib: 1, model: 'X' } }],
      workload: [],
      clock: { until: '6h' },
    })
    for (const kind of ['nodes', 'arrivals', 'task'] as const) {
      expect(() => void JSON.parse(NEW_ENTRIES[kind](isJson(read(json))))).not.toThrow()
    }
  })

  test('can only be edited in the text if it is a collection or an alias', () => {
    const text =
      'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: &g { vram_mib: 1 } }, { name: b, gpu: *g }]\n' +
      'clock: none\n'
    const scenario = read(text)
    expect(valueAt(scenario, ['fleet'])).toBeNull()
    expect(withValue(scenario, ['fleet'], 'x')).toBeNull()
    expect(valueAt(scenario, ['fleet', 1, 'gpu', 'vram_mib'])).toBeNull()
    expect(withValue(scenario, ['fleet', 1, 'gpu', 'vram_mib'], '2')).toBeNull()
    expect(withValue(scenario, ['clock', 'until'], '6h')).toBeNull()
    expect(valueAt(scenario, ['seed'])).toBeUndefined()
  })
})

describe('a removed value', () => {
  const text = `scenario: two
version: 1
seed: 3   # drawn once
clock: { until: 6h }
config:
  default_vram_overcommit_percent: 50
fleet:
  # the large ones
  - { name: "a-{i}", count: 2, gpus: 4, gpu: { model: X, vram_mib: 40Gi } }   # both
  - count: 3
    name: "b-{i}"
    gpu:
      model: Y
      vram_mib: 24000
workload: [{ task: { id: t, at: 10m, vram_mib: 1, priority: 0 } }]
`

  test.each([
    [['seed'], ['seed: 3   # drawn once'], []],
    [['clock', 'until'], ['clock: { until: 6h }'], []],
    [['config', 'default_vram_overcommit_percent'], ['config:', '  default_vram_overcommit_percent: 50'], []],
    [
      ['fleet', 0, 'count'],
      ['  - { name: "a-{i}", count: 2, gpus: 4, gpu: { model: X, vram_mib: 40Gi } }   # both'],
      ['  - { name: "a-{i}", gpus: 4, gpu: { model: X, vram_mib: 40Gi } }   # both'],
    ],
    [
      ['fleet', 0, 'gpu', 'model'],
      ['  - { name: "a-{i}", count: 2, gpus: 4, gpu: { model: X, vram_mib: 40Gi } }   # both'],
      ['  - { name: "a-{i}", count: 2, gpus: 4, gpu: { vram_mib: 40Gi } }   # both'],
    ],
    [['fleet', 1, 'count'], ['  - count: 3', '    name: "b-{i}"'], ['  - name: "b-{i}"']],
    [['fleet', 1, 'gpu', 'model'], ['      model: Y'], []],
    [
      ['workload', 0, 'task', 'priority'],
      ['workload: [{ task: { id: t, at: 10m, vram_mib: 1, priority: 0 } }]'],
      ['workload: [{ task: { id: t, at: 10m, vram_mib: 1 } }]'],
    ],
  ] as const)(
    'at %j is removed with its line, or with its record if that becomes empty',
    (path, gone, come) => {
      const less = withoutValue(read(text), path) as string
      expect([linesOnlyIn(text, less), linesOnlyIn(less, text)]).toEqual([gone, come])
      expect(valueAt(read(less), path)).toBeUndefined()
    },
  )

  test('stays if other values would be removed with it', () => {
    const scenario = read('scenario: &n x\nversion: 1\nseed: 1\ndescription: *n\nfleet:\n  - name: a\n')
    expect(withoutValue(scenario, ['scenario'])).toBeNull()
    expect(withoutValue(scenario, ['fleet', 0, 'name'])).toBeNull()
    expect(withoutValue(scenario, ['clock', 'until'])).toBeNull()
    expect(withoutValue(scenario, ['seed'])).toBe(
      'scenario: &n x\nversion: 1\ndescription: *n\nfleet:\n  - name: a\n',
    )
    const json = read('{ "scenario": "x", "seed": 1, "fleet": [] }')
    expect(withoutValue(json, ['seed'])).toBe('{ "scenario": "x", "fleet": [] }')
  })

  test('leaves every library scenario readable, for every optional field', () => {
    const folder = join(import.meta.dirname, '../../scenarios')
    for (const name of readdirSync(folder).filter((each) => each.endsWith('.scenario.yaml'))) {
      const scenario = read(readFileSync(join(folder, name), 'utf8'))
      const paths: Path[] = GENERAL_FIELDS.filter(({ isOptional }) => isOptional).flatMap(
        ({ paths: all }) => all,
      )
      for (let at = 0; at < lengthAt(scenario, ['fleet']); at++) {
        paths.push(
          ...FLEET_FIELDS.filter(({ isOptional }) => isOptional).flatMap(({ paths: all }) =>
            all.map((path) => ['fleet', at, ...path]),
          ),
        )
      }
      for (const path of paths) {
        if (typeof valueAt(scenario, path) !== 'string') continue
        const less = withoutValue(scenario, path)
        expect(
          less === null ? null : valueAt(read(less), path),
          `${name} at ${path.join('.')}`,
        ).toBeUndefined()
      }
    }
  })
})

describe('an entry of a list', () => {
  test('is added at the end of its list, and removed with its line', () => {
    const more = withEntry(read(TEXT), ['fleet'], NEW_ENTRIES.nodes(false)) as string
    expect(linesOnlyIn(more, TEXT)).toEqual([
      '  - { name: "node-{i}", count: 2, gpus: 4, gpu: { vram_mib: 40960 } }',
    ])
    expect(lengthAt(read(more), ['fleet'])).toBe(3)
    expect(() => problemsOf(more)).not.toThrow()
    expect(withoutEntry(read(more), ['fleet'], 2)).toBe(TEXT)
    const less = withoutEntry(read(TEXT), ['fleet'], 0) as string
    expect(less).toContain('# the large ones')
    expect(valueAt(read(less), ['fleet', 0, 'name'])).toBe('b')
    expect(withoutEntry(read(TEXT), ['workload'], 0)).toBeNull()
  })

  test('creates its list if that is missing or empty', () => {
    for (const before of [
      'scenario: x\n',
      'scenario: x\nworkload: []\n',
      'scenario: x\nworkload:\n',
      '{ "scenario": "x" }',
    ]) {
      const text = withEntry(read(before), ['workload'], NEW_ENTRIES.task(isJson(read(before)))) as string
      expect(valueAt(read(text), ['workload', 0, 'task', 'id']), text).toBe('task-1')
    }
    const flow = '{ scenario: x, fleet: [{ name: a }, { name: b }, { name: c }] }'
    expect(withoutEntry(read(flow), ['fleet'], 0)).toBe('{ scenario: x, fleet: [{ name: b }, { name: c }] }')
    expect(withoutEntry(read(flow), ['fleet'], 2)).toBe('{ scenario: x, fleet: [{ name: a }, { name: b }] }')
  })
})

test('The form is not available for text that is too long, not YAML or not a map', () => {
  for (const text of ['a: [', '- x', 'x', '', `a: ${'x'.repeat(MAX_FORM_CHARACTERS)}`])
    expect(readScenarioText(text)).toBeNull()
})

test('The first scenario is valid, and stays valid with every entry that can be added', () => {
  let text = FIRST_SCENARIO
  for (const [path, kind] of [
    ['fleet', 'nodes'],
    ['workload', 'arrivals'],
    ['workload', 'task'],
  ] as const) {
    const added =
      kind === 'nodes' ? NEW_ENTRIES[kind](false).replace('node-', 'more-') : NEW_ENTRIES[kind](false)
    text = withEntry(read(text), [path], added) as string
  }
  expect(() => problemsOf(text)).not.toThrow()
})

test('Every field of the library scenarios can be rewritten without other changes than quotes', () => {
  const folder = join(import.meta.dirname, '../../scenarios')
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.scenario.yaml'))) {
    const text = readFileSync(join(folder, name), 'utf8')
    const scenario = read(text)
    const paths: Path[] = GENERAL_FIELDS.flatMap(({ paths: all }) => all)
    for (let at = 0; at < lengthAt(scenario, ['fleet']); at++) {
      paths.push(...FLEET_FIELDS.flatMap(({ paths: all }) => all.map((path) => ['fleet', at, ...path])))
    }
    for (let at = 0; at < lengthAt(scenario, ['workload']); at++) {
      for (const fields of Object.values(WORKLOAD_FIELDS)) {
        paths.push(...fields.flatMap(({ paths: all }) => all.map((path) => ['workload', at, ...path])))
      }
    }
    for (const path of paths) {
      const value = valueAt(scenario, path)
      if (typeof value !== 'string') continue
      const same = withValue(scenario, path, value) as string
      expect(parse(same), `${name} at ${path.join('.')}`).toEqual(parse(text))
    }
  }
})
