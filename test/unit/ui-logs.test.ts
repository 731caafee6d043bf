/** The output of a task on the page: lines, colours, search, and reading from the end. */
import { describe, expect, test } from 'vitest'
import { rowWindow } from '../../ui/design/row-window.ts'
import { byteWords } from '../../ui/format/bytes.ts'
import { LogLines, MAX_LINE_CHARACTERS } from '../../ui/pages/tasks/logs/log-lines.ts'
import { LogReader, PIECE_BYTES, type ReadPiece } from '../../ui/pages/tasks/logs/log-reader.ts'
import { markedSpans, matchesIn } from '../../ui/pages/tasks/logs/log-search.ts'

function linesOf(...parts: readonly string[]): LogLines {
  const lines = new LogLines()
  for (const part of parts) lines.push(part)
  return lines
}
const textsOf = (...parts: readonly string[]) => linesOf(...parts).lines.map(({ text }) => text)

describe('lines of an output', () => {
  test.each([
    ['an open last line', ['a\nb'], ['a', 'b']],
    ['Windows line ends', ['a\r\nb\r\n'], ['a', 'b']],
    ['the last state of a progress bar', ['10%\r50%\r100%\ndone\n'], ['100%', 'done']],
    ['a progress bar that is not over', ['10%\r', '50%\r'], ['50%']],
    ['no cursor moves, titles or erasures', ['a\x1b[2A\x1b[2Kb\x1b]0;title\x07c\x1b[?25l\n'], ['abc']],
    ['a sequence that comes in two parts', ['a\x1b[3', '1mred\n'], ['ared']],
    ['a title that comes in two parts', ['a\x1b]0;ti', 'tle\x1b', '\\b\n'], ['ab']],
    ['control characters by sight', ['a\0b\bc\n'], ['a␀b␈c']],
    ['marks that change the order of text', ['exe\u202etxt\n'], ['exe[U+202E]txt']],
    ['markup as text', ['<img src=x>\n'], ['<img src=x>']],
  ])('show %s', (_name, parts, texts) => {
    expect(textsOf(...parts)).toEqual(texts)
  })

  test('Colours and weights apply until they are reset, also in the next line', () => {
    const { lines } = linesOf('\x1b[1;31mbad\nstill\x1b[0m plain \x1b[38;5;10mgreen\x1b[38;2;1;2;3mown\n')
    const [bad, still] = lines
    expect(bad?.spans).toEqual([{ text: 'bad', colour: 1, isBold: true, isUnderlined: false }])
    expect(still?.spans.map(({ text, colour, isBold }) => [text, colour, isBold])).toEqual([
      ['still', 1, true],
      [' plain ', null, false],
      ['green', 10, false],
      ['own', null, false],
    ])
  })

  test('A line without end is cut', () => {
    const [line] = linesOf('x'.repeat(MAX_LINE_CHARACTERS), 'y'.repeat(50)).lines
    expect(line?.text).toHaveLength(MAX_LINE_CHARACTERS)
  })
})

describe('a search in an output', () => {
  const { lines } = linesOf('Loss 1\n\x1b[32mlo\x1b[0mss loss\n')

  test('finds every occurrence, in any case and across colours', () => {
    expect(matchesIn(lines, 'LOSS')).toEqual([
      { line: 0, at: 0 },
      { line: 1, at: 0 },
      { line: 1, at: 5 },
    ])
    expect(matchesIn(lines, '')).toEqual([])
  })

  test('marks the occurrences and keeps the colours', () => {
    const spans = markedSpans(lines[1] as (typeof lines)[number], 'loss')
    expect(spans.map(({ text, colour, isMarked }) => [text, colour, isMarked])).toEqual([
      ['lo', 2, true],
      ['ss', null, true],
      [' ', null, false],
      ['loss', null, true],
    ])
  })
})

/** Output that grows, as a GPU server keeps it. */
function kept(first: string) {
  const state = { bytes: Buffer.from(first), attempt: 1, from: 0, isEnded: false }
  const asked: number[] = []
  const read: ReadPiece = ({ stream, offset, max_bytes: max }) => {
    asked.push(offset)
    const at = Math.min(Math.max(offset, state.from), state.bytes.length)
    const data = state.bytes.subarray(at, at + max)
    return Promise.resolve({
      task_id: 't',
      node_id: 'n',
      attempt: state.attempt,
      stream,
      offset: at,
      next_offset: at + data.length,
      data: data.toString('base64'),
      is_ended: state.isEnded && at + data.length === state.bytes.length,
    })
  }
  const write = (text: string): void => {
    state.bytes = Buffer.concat([state.bytes, Buffer.from(text)])
  }
  return { state, asked, write, reader: new LogReader('stdout', read) }
}

describe('a reader of output', () => {
  test('begins with the last piece, without the part of a line, and loads the earlier one', async () => {
    const numbers = Array.from({ length: 40_000 }, (_, at) => `line ${at}\n`)
    const { asked, reader } = kept(numbers.join(''))
    expect(await reader.readOn()).toBe(true)
    expect(reader.lines.at(-1)?.text).toBe('line 39999')
    expect(reader.lines[0]?.text).toMatch(/^line \d+$/)
    expect(asked).toHaveLength(3)
    const before = reader.lines.length
    expect(await reader.readEarlier()).toBe(true)
    const all = reader.lines.map(({ text }) => text)
    expect(all.length).toBeGreaterThan(before)
    expect(all).toEqual(numbers.slice(-all.length).map((line) => line.trim()))
  })

  test('reads on where it stopped, and splits no letter', async () => {
    const { state, write, reader } = kept('a\n')
    await reader.readOn()
    const bytes = Buffer.from('ü✓\n')
    state.bytes = Buffer.concat([state.bytes, bytes.subarray(0, 1)])
    await reader.readOn()
    state.bytes = Buffer.concat([state.bytes, bytes.subarray(1)])
    await reader.readOn()
    expect(reader.lines.map(({ text }) => text)).toEqual(['a', 'ü✓'])
    expect(await reader.readOn()).toBe(false)
    write('end\n')
    state.isEnded = true
    await reader.readOn()
    expect(reader.isEnded).toBe(true)
    expect(await reader.readEarlier()).toBe(false)
  })

  test('counts the bytes that were dropped before they were read', async () => {
    const { state, write, reader } = kept('a\n')
    await reader.readOn()
    write('lost\nkept\n')
    state.from = 7
    await reader.readOn()
    expect(reader.missedBytes).toBe(5)
    expect(reader.lines.at(-1)?.text).toBe('kept')
  })

  test('A new attempt replaces the output of the one before', async () => {
    const { state, reader } = kept('first\n'.repeat(3))
    await reader.readOn()
    state.attempt = 2
    state.bytes = Buffer.from('second\n')
    expect(await reader.readOn()).toBe(true)
    expect(reader.lines.map(({ text }) => text)).toEqual(['second'])
  })

  test('keeps at most 4 MiB, and can load what it dropped', async () => {
    const { write, reader } = kept('')
    await reader.readOn()
    for (let at = 0; at < 40; at++) {
      write(`${'x'.repeat(127)}\n`.repeat(PIECE_BYTES / 128))
      await reader.readOn()
    }
    expect(reader.start).toBeGreaterThan(0)
    expect(await reader.readEarlier()).toBe(true)
  })
})

test.each([
  [0, 100, 1_000, { first: 0, end: 15 }],
  [1_000, 100, 1_000, { first: 40, end: 65 }],
  [19_900, 100, 1_000, { first: 985, end: 1_000 }],
  [500, 100, 3, { first: 0, end: 3 }],
])('At %i px, %i px show the rows of %i that are in view', (top, height, count, rows) => {
  expect(rowWindow(top, height, 20, count)).toEqual(rows)
})

test.each([
  [0, '0 B'],
  [1_023, '1,023 B'],
  [1_536, '1.5 KiB'],
  [3_565_158, '3.4 MiB'],
  [null, '—'],
] as const)('%j bytes are %s', (bytes, words) => {
  expect(byteWords(bytes)).toBe(words)
})
