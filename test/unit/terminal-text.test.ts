import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { bar, age, size, span } from '../../cli/output/figures.ts'
import { OUTPUT_FORMATS } from '../../cli/output/formats.ts'
import { printList, printOne, type Column } from '../../cli/output/table.ts'
import { clipped } from '../../cli/status/top.ts'
import { paletteOf, visible, visibleLines } from '../../cli/output/terminal-text.ts'
import { parseVram } from '../../clients/typescript/vram-size.ts'

const HOSTILE = 'a\u001b[31m\u009b2J\u0007\u007f\u202e\u2028\rb\n\tc'
const UNSAFE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/

class Paper {
  text = ''
  readonly isTTY: boolean
  constructor(isTTY = false) {
    this.isTTY = isTTY
  }
  write(text: string): void {
    this.text += text
  }
}

const COLUMNS: readonly Column<{ name: string; n: number }>[] = [
  { title: 'NAME', of: (row) => row.name },
  { title: 'N', isNumber: true, of: (row) => row.n },
  { title: 'MORE', isWide: true, of: () => null },
]

describe('text from outside', () => {
  test('is shown with escapes', () => {
    expect(visible(HOSTILE)).toBe('a\\x1b[31m\\x9b2J\\x07\\x7f\\u202e\\u2028\\rb\\n\\tc')
    expect(visibleLines('a\r\nb\tc\rd\u001b')).toBe('a\nb\tc\\rd\\x1b')
  })

  test.each(OUTPUT_FORMATS)(
    'never reaches the terminal raw in -o %s, and programs can read it back',
    async (format) => {
      const text = fc.string({ unit: 'binary' }).map((one) => one.replaceAll(/[\ud800-\udfff]/g, ''))
      await fc.assert(
        fc.asyncProperty(fc.oneof(text, fc.constant(HOSTILE)), async (name) => {
          const rows = [{ name, n: 1 }]
          const paper = new Paper()
          await printList(rows, COLUMNS, format, paper)
          expect(paper.text).not.toMatch(UNSAFE)
          if (format === 'json' || format === 'jsonl') expect([JSON.parse(paper.text)].flat()).toEqual(rows)
          if (format === 'yaml') expect(parseDocument(paper.text).toJS()).toEqual(rows)
          const one = new Paper()
          await printOne({ [name]: name }, [[name, [name, 'x']]], format, one)
          expect(one.text).not.toMatch(UNSAFE)
        }),
        { numRuns: 300 },
      )
    },
  )
})

describe('a table on the terminal', () => {
  test('has columns as wide as their content, wide columns on request, and a dash for null', async () => {
    const rows = [
      { name: 'one', n: 5 },
      { name: 'seventeen', n: 12_345 },
    ]
    const table = new Paper()
    await printList(rows, COLUMNS, 'table', table)
    expect(table.text).toBe('NAME           N\none            5\nseventeen  12345\n')
    const wide = new Paper()
    await printList(rows, COLUMNS, 'wide', wide)
    expect(wide.text).toBe('NAME           N  MORE\none            5  -\nseventeen  12345  -\n')
  })

  test('A wide character takes two columns of a terminal, an accent none', async () => {
    const table = new Paper()
    const names = ['東京', 'e\u0301t', 'plain']
    await printList(
      names.map((name) => ({ name, n: 1 })),
      COLUMNS,
      'table',
      table,
    )
    expect(table.text).toBe('NAME   N\n東京   1\ne\u0301t     1\nplain  1\n')
  })

  test('has colours on a terminal, and none with NO_COLOR, TERM=dumb or in a file', () => {
    expect(paletteOf({ isTTY: true }, {}).red('x')).toBe('\u001b[31mx\u001b[0m')
    expect(paletteOf({ isTTY: true }, { NO_COLOR: '1' }).red('x')).toBe('x')
    expect(paletteOf({ isTTY: true }, { TERM: 'dumb' }).red('x')).toBe('x')
    expect(paletteOf({}, {}).red('x')).toBe('x')
  })

  test('has lines cut by their visible length', () => {
    expect(clipped('\u001b[31mabc\u001b[0mdef', 4)).toBe('\u001b[31mabc\u001b[0md')
    expect(clipped('abc', 10)).toBe('abc')
  })
})

describe('a quantity on the command line', () => {
  test.each([
    ['8Gi', 8192],
    ['8192Mi', 8192],
    ['1Ti', 1_048_576],
    ['8G', 7630],
    ['1M', 1],
    ['0Gi', 0],
    ['8', null],
    ['8 Gi', null],
    ['8gi', null],
    ['8GiB', null],
    ['1.5Gi', null],
    ['-1Gi', null],
    ['', null],
    ['1e3Mi', null],
  ])('%s is parsed', (text, mib) => expect(parseVram(text)).toBe(mib))

  test('is formatted as a size, a time span or a bar', () => {
    expect([size(0), size(1023), size(8192), size(47_988)]).toEqual(['0Mi', '1023Mi', '8Gi', '46.9Gi'])
    expect([0, 119_000, 7_199_000, 86_400_000, 200_000_000].map(span)).toEqual([
      '0s',
      '119s',
      '119m',
      '24h',
      '2d',
    ])
    expect(age('2026-01-01T00:00:10Z', Date.UTC(2026, 0, 1))).toBe('0s')
    expect([bar(0, 0, 4), bar(1, 2, 4), bar(9, 2, 4)]).toEqual(['░░░░', '██░░', '████'])
  })
})
