import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'

const MIB = 1_048_576
/** CPU time of the test's thread: a busy machine does not change it. A refusal takes less than a second. */
const MAX_CPU_S = 5
const HEAD = 'scenario: x\nversion: 1\nfleet: [{ name: a, gpu: { vram_mib: 40960 } }]\n'

function refusalOf(text: string): string {
  try {
    loadScenario({ text, baseDir: '/', file: 'x' })
  } catch (error) {
    if (error instanceof ScenarioError) return error.message
    throw error
  }
  throw new Error('the scenario was taken')
}

function expectRefusedAtOnce(text: string, message: string): void {
  const before = process.threadCpuUsage()
  expect(refusalOf(text)).toContain(message)
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1e6).toBeLessThan(MAX_CPU_S)
}

/** As often as fits into a file. */
function fill(piece: string): string {
  return piece.repeat(Math.floor(MIB / piece.length))
}

function lines(count: number, line: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => line(i)).join('\n')
}

const TOO_DEEP = 'lists and maps may be nested at most 64 deep'
const TOO_LONG = 'a value may have at most 65536 characters'
const TOO_MUCH = 'a scenario may have at most 500000 words and signs'

describe('A hostile file is refused at once:', () => {
  it.each([
    ['20,000 brackets', '['.repeat(20_000), `x:1:65: ${TOO_DEEP}`],
    ['a file of brackets', fill('['), TOO_DEEP],
    ['a file of braces', fill('{a: '), TOO_DEEP],
    ['20,000 dashes', '- '.repeat(20_000), `x:1:129: ${TOO_DEEP}`],
    ['a file of question marks', fill('? '), TOO_MUCH],
    ['1,000 indentations', lines(1000, (i) => `${' '.repeat(i)}a:`), TOO_DEEP],
    ['a word of 1 MiB', fill('x'), TOO_LONG],
    ['a comment of 1 MiB', `#${'x'.repeat(MIB - 1)}`, TOO_LONG],
    ['more than 1 MiB', 'x'.repeat(MIB + 1), 'x:1:1: is larger than 1048576 bytes'],
    ['a million items', `[${'1,'.repeat(MIB / 2 - 1)}`, TOO_MUCH],
    ['a million empty lists', `[${'[],'.repeat(MIB / 3 - 1)}`, TOO_MUCH],
    ['a file of closing brackets', fill(']'), 'Unexpected flow-seq-end'],
    ['a file of wrong escapes', fill(`- "${'\\z'.repeat(30_000)}"\n`), 'may have at most 10000 backslashes'],
    ['60,000 unknown keys', lines(60_000, (i) => `k${i}: 1`), 'k0: is not a known key'],
    ['60,000 duplicate keys', 'a: 1\n'.repeat(60_000), 'x:2:1: a: stands here for the second time'],
    ['100,000 documents', '---\n'.repeat(100_000), 'x:2:1: a scenario is one YAML document'],
    ['60,000 tags', '- !!x 1\n'.repeat(60_000), 'Unresolved tag'],
    [
      'a billion tasks',
      `${HEAD}workload: [{ generate: poisson, rate_per_hour: 1000000000, until: 1d, vram_mib: 1 }]`,
      'allowed are 10000000 in all',
    ],
    ['a billion seeds', `${HEAD}sweep: { seeds: 0..1000000000 }`, 'allowed are at most 10000'],
    [
      'a prototype',
      `${HEAD}config: { __proto__: { safety_reserve_mib: 0 } }`,
      'x:4:11: config.__proto__: is not a name',
    ],
  ])('%s', (_, text, message) => expectRefusedAtOnce(text, message))
})

describe('YAML aliases', () => {
  it('represent values', () => {
    const text =
      'scenario: x\nversion: 1\nfleet:\n  - &node { name: a, gpu: &gpu { vram_mib: 8Gi } }\n' +
      '  - { name: b, gpu: *gpu }\n'
    expect(
      loadScenario({ text, baseDir: '/' }).scenario.nodes.map((node) => [node.name, node.gpu.vramMib]),
    ).toEqual([
      ['a', 8192],
      ['b', 8192],
    ])
  })

  const bomb = lines(
    11,
    (i) =>
      `a${i}: &a${i} [${
        i === 0
          ? '1'
          : Array(9)
              .fill(`*a${i - 1}`)
              .join(', ')
      }]`,
  )

  it.each([
    ['a bomb', bomb, 'aliases may stand for at most 100000 values in all'],
    [
      'many of a long list',
      `a: &a [${'1,'.repeat(2000)}]\n${lines(90, (i) => `b${i}: *a`)}`,
      'aliases may stand for at most 100000 values',
    ],
    [
      'more than 100',
      `a: &a 1\nb: [${'*a, '.repeat(101)}]`,
      'x:2:405: b[100]: a scenario may have at most 100 aliases',
    ],
    [
      'a tower',
      lines(90, (i) => `a${i}: &a${i} [${i === 0 ? '1' : `*a${i - 1}`}]`),
      'x:64:12: a63[0]: lists and maps may be nested at most 64 deep',
    ],
    ['of itself', 'a: &a [1, *a]', 'x:1:11: a[1]: *a lies inside of what it stands for'],
    ['of nothing', 'a: *b\nb: &b 1', 'x:1:4: a: no anchor &b stands before *b'],
  ])('%s', (_, text, message) => expectRefusedAtOnce(text, message))
})

describe('Broken YAML is refused:', () => {
  it.each([
    [
      'an open list',
      'a: [1, 2',
      'x:1:9: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['an open quote', 'a: "x', 'x:1:6: Missing closing "quote'],
    ['a tab', 'a:\n\tb: 1', 'x:2:1: Tabs are not allowed as indentation'],
    ['two on one line', 'a: b: c', 'x:1:4: Nested mappings are not allowed in compact mappings'],
    ['another version of YAML', '%YAML 1.1\n--- \na: 1', 'x:1:1: must be YAML 1.2, is 1.1'],
    ['two documents', 'a: 1\n---\nb: 1', 'x:2:1: a scenario is one YAML document; here a second one begins'],
    ['a tag', `${HEAD}seed: !!binary aGk=`, 'x:4:7: Unresolved tag'],
    ['an ordered map', `${HEAD}config: !!omap [{ a: 1 }]`, 'x:4:9: Unresolved tag'],
  ])('%s', (_, text, message) => expect(refusalOf(text)).toContain(message))
})

describe('Any text', () => {
  const good =
    `${HEAD}clock: { until: 6h }\nworkload:\n` +
    '  - { generate: poisson, rate_per_hour: 1, vram_mib: &v { uniform: { min: 1, max: 2 } } }\n' +
    '  - { task: { id: a, vram_mib: 1, work: { kind: phases, phases: [[1, 2]] } } }\n'
  const pieces = [
    '&v',
    '*v',
    '[',
    ']',
    '{',
    '}',
    ':',
    ',',
    '- ',
    '\n',
    '"',
    "'",
    '|',
    '? ',
    '#',
    '!!',
    '\t',
    '0',
    'null',
    '~',
    '%',
    '---',
    '<<: ',
    '@',
    '\u{0}',
  ]

  it('is accepted or refused with a ScenarioError', () => {
    const edit = fc.record({
      at: fc.nat(good.length),
      remove: fc.nat(12),
      insert: fc.constantFrom('', ...pieces),
    })
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 5 }), (edits) => {
        const text = edits.reduce(
          (before, { at, remove, insert }) => before.slice(0, at) + insert + before.slice(at + remove),
          good,
        )
        try {
          loadScenario({ text, baseDir: '/' })
        } catch (error) {
          if (!(error instanceof ScenarioError)) throw error
          for (const { line, column, detail } of error.problems)
            expect([line > 0, column > 0, detail !== '']).toEqual([true, true, true])
        }
      }),
      { numRuns: 700 },
    )
  })
})
