import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createSeriesFiles } from '../../controller/adapters/series-files.ts'
import type { SeriesArchive } from '../../controller/ports/series-archive.ts'
import { MemoryArchive } from '../support/memory-archive.ts'

const root = mkdtempSync(join(tmpdir(), 'headroom-series-'))
afterAll(() => rmSync(root, { recursive: true }))

let folders = 0
const newFolder = () => join(root, String(++folders))
const text = (value: string) => new TextEncoder().encode(value)
const LOG = 'node-10s'

async function readAll(archive: SeriesArchive, log = LOG): Promise<string[][]> {
  const segments: string[][] = []
  for await (const records of archive.read(log))
    segments.push(records.map((record) => new TextDecoder().decode(record)))
  return segments
}

const KINDS: readonly (readonly [string, () => () => SeriesArchive])[] = [
  [
    'in memory',
    () => {
      const archive = new MemoryArchive()
      return () => archive
    },
  ],
  [
    'in files',
    () => {
      const dir = newFolder()
      return () => createSeriesFiles({ dir, log: (line) => expect.fail(line) })
    },
  ],
]

describe.each(KINDS)('an archive of series %s', (_, newPlace) => {
  it('A reopened archive returns what was added, in order and by segments', async () => {
    const open = newPlace()
    const archive = open()
    expect(await readAll(archive)).toEqual([])
    archive.append(LOG, [text('a'), text('b')], 10_000)
    archive.append(LOG, [text('c')], null)
    archive.append('gpu-60s', [text('other')], 60_000)
    archive.append(LOG, [text('d')], 20_000)
    await archive.close()
    expect(await readAll(open())).toEqual([['a', 'b', 'c'], ['d']])
    expect(await readAll(open(), 'gpu-60s')).toEqual([['other']])
  })

  it('deletes segments that cover only earlier times', async () => {
    const open = newPlace()
    const archive = open()
    for (const at of [10, 20, 30, 40]) archive.append(LOG, [text(String(at))], at * 1000)
    archive.trim(LOG, 29_999)
    await archive.close()
    expect(await readAll(open())).toEqual([['20'], ['30'], ['40']])
    archive.trim(LOG, 1_000_000)
    await archive.close()
    expect(await readAll(open())).toEqual([['40']])
  })
})

describe('the files of a series archive', () => {
  async function twoSegments(): Promise<{ dir: string; files: string[] }> {
    const dir = newFolder()
    const archive = createSeriesFiles({ dir, log: (line) => expect.fail(line) })
    archive.append(LOG, [text('first'), text('second'), text('third')], 10_000)
    archive.append(LOG, [text('fourth')], 20_000)
    await archive.close()
    return { dir, files: ['node-10s.10', 'node-10s.20'].map((name) => join(dir, name)) }
  }

  it('are readable only by their owner', async () => {
    const { dir, files } = await twoSegments()
    expect([statSync(dir).mode & 0o777, statSync(files[0] as string).mode & 0o777]).toEqual([0o700, 0o600])
  })

  it('that are cut off, as by kill -9, yield their complete part without a message', async () => {
    const { dir, files } = await twoSegments()
    const path = files[0] as string
    const whole = readFileSync(path)
    for (let length = whole.length; length >= 0; length--) {
      writeFileSync(path, whole)
      truncateSync(path, length)
      const segments = await readAll(createSeriesFiles({ dir, log: (line) => expect.fail(line) }))
      expect(['first', 'second', 'third'].slice(0, segments[0]?.length)).toEqual(segments[0])
      expect(segments[1]).toEqual(['fourth'])
    }
  })

  it('that are damaged are set aside with one line, without effect on other segments', async () => {
    const { length } = readFileSync((await twoSegments()).files[0] as string)
    for (let at = 0; at < length; at += 3) {
      const { dir, files } = await twoSegments()
      const bytes = readFileSync(files[0] as string)
      bytes[at] = (bytes[at] as number) ^ 0x40
      writeFileSync(files[0] as string, bytes)
      const lines: string[] = []
      const segments = await readAll(createSeriesFiles({ dir, log: (line) => lines.push(line) }))
      expect(segments.at(-1)).toEqual(['fourth'])
      expect(['first', 'second', 'third'].slice(0, segments[0]?.length)).toEqual(segments[0])
      // A length that exceeds the rest of the file looks like a file that was cut off.
      expect(lines.length).toBeLessThanOrEqual(1)
      if (lines.length === 1)
        expect(readdirSync(dir).sort((a, b) => (a < b ? -1 : 1))).toEqual(['node-10s.20', 'node-10s.damaged'])
    }
  })

  it('of another version or program are set aside or left alone', async () => {
    const dir = newFolder()
    const archive = createSeriesFiles({ dir, log: () => {} })
    archive.append(LOG, [text('ours')], 10_000)
    await archive.close()
    writeFileSync(join(dir, 'node-10s.5'), 'headroom series 2\nwhatever')
    writeFileSync(join(dir, 'notes.txt'), 'of the operator')
    const lines: string[] = []
    expect((await readAll(createSeriesFiles({ dir, log: (line) => lines.push(line) }))).at(-1)).toEqual([
      'ours',
    ])
    expect(lines).toEqual([expect.stringContaining('no series of this version')])
    expect(readFileSync(join(dir, 'notes.txt'), 'utf8')).toBe('of the operator')
  })

  it('that cannot be written are reported once, without an exception', async () => {
    const blocked = newFolder()
    writeFileSync(blocked, 'a file where the folder should be')
    const lines: string[] = []
    const archive = createSeriesFiles({ dir: blocked, log: (line) => lines.push(line) })
    for (let i = 0; i < 5; i++) archive.append(LOG, [text('x')], i * 10_000)
    archive.append(LOG, [text('x')], null)
    archive.trim(LOG, 1e12)
    await archive.close()
    expect((await readAll(archive)).flat()).toEqual([])
    expect(lines.filter((line) => line.startsWith('series cannot be stored'))).toHaveLength(1)
  })

  it('continue in a new segment, and never after a partial frame of an earlier process', async () => {
    const { dir, files } = await twoSegments()
    truncateSync(files[1] as string, statSync(files[1] as string).size - 1)
    const archive = createSeriesFiles({ dir, log: (line) => expect.fail(line) })
    expect(archive.append(LOG, [text('lost')], null)).toBe(false)
    expect(archive.append(LOG, [text('fifth')], 20_000)).toBe(true)
    await archive.close()
    expect(await readAll(createSeriesFiles({ dir, log: (line) => expect.fail(line) }))).toEqual([
      ['first', 'second', 'third'],
      [],
      ['fifth'],
    ])
  })
})
