import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  appendFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { HEADER_BYTES } from '../../controller/adapters/recording/format.ts'
import {
  newReadNotes,
  readRecording,
  type ReadNotes,
} from '../../controller/adapters/recording/read-recording.ts'
import {
  createRecordingFiles,
  type RecordingFilesOptions,
} from '../../controller/adapters/recording/write-recording.ts'
import type { Checkpoint, RecordedEntry } from '../../controller/ports/recording-log.ts'
import { aTask } from '../support/store-builders.ts'

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'headroom-recording-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

const START: RecordedEntry = {
  k: 'start',
  at: 0,
  version: 'test',
  initialConfig: {},
  ownerLimits: { maxPending: null, maxPlacedGpus: null, p0: null },
  areHeartbeatsElided: false,
}

function timer(n: number): RecordedEntry {
  return { k: 'timer', at: n, due: n, rank: 3 }
}

function files(options: Partial<RecordingFilesOptions> = {}) {
  const stopped: string[] = []
  const written = createRecordingFiles({
    dir,
    fileBytes: 1_000_000,
    maxFiles: 4,
    version: 'test',
    now: () => 0,
    onStopped: (reason) => stopped.push(reason),
    freeBytes: () => Promise.resolve(Infinity),
    ...options,
  })
  return { written, stopped }
}

/** Writes each list before the next, so that each is a separate block. */
async function write(
  blocks: readonly (readonly RecordedEntry[])[],
  options: Partial<RecordingFilesOptions> = {},
): Promise<void> {
  const { written } = files(options)
  const flushed = (bytes: number): Promise<void> =>
    new Promise((done) => {
      const look = (): void => void (written.writtenBytes > bytes ? done() : setTimeout(look, 5))
      look()
    })
  for (const block of blocks) {
    const before = written.writtenBytes
    for (const entry of block) written.append(entry)
    await flushed(before)
  }
  await written.close()
}

function read(
  path = dir,
  notes: ReadNotes = newReadNotes(),
): { entries: (RecordedEntry | Checkpoint)[]; notes: ReadNotes } {
  return { entries: [...readRecording(path, notes)], notes }
}

const names = (): string[] => readdirSync(dir).sort((a, b) => (a < b ? -1 : 1))
const first = (): string => join(dir, names()[0] as string)

describe('a recording in files', () => {
  it('is read entry by entry, from the folder and from its first file', async () => {
    await write([[START, timer(1)], [timer(2)]])
    const entries = [START, timer(1), timer(2)]
    expect(read()).toMatchObject({ entries, notes: { files: 1, blocks: 2, entries: 3, notes: [] } })
    expect(read(first()).entries).toEqual(entries)
    expect(statSync(first()).mode & 0o777).toBe(0o600)
  })

  it('continues in a new file when one is full, and keeps the newest files', async () => {
    const blocks = [[START], [timer(1)], [timer(2)], [timer(3)]]
    await write(blocks, { fileBytes: 1, maxFiles: 4 })
    expect(names()).toHaveLength(4)
    expect(read().entries).toEqual(blocks.flat())
    await write(blocks.slice(0, 2), { fileBytes: 1, maxFiles: 4 })
    expect(names()).toHaveLength(4)
    const { entries, notes } = read()
    expect(entries).toEqual(blocks.slice(0, 2).flat())
    expect(notes.notes).toHaveLength(1)
    expect(notes.notes[0]).toContain('middle of a run')
  })

  it('is read up to the last complete block if its end was not written completely', async () => {
    await write([[START], [timer(1), timer(2)]])
    const { size } = statSync(first())
    for (const cut of [1, 20, 44, 50]) {
      const copy = readFileSync(first())
      truncateSync(first(), size - cut)
      const { entries, notes } = read()
      expect(entries).toEqual([START])
      expect(notes.notes[0]).toMatch(/its last \d+ bytes were written incompletely/)
      writeFileSync(first(), copy)
    }
    appendFileSync(first(), Buffer.alloc(100))
    expect(read().entries).toHaveLength(3)
  })

  it('reports once that a run has lost its beginning', async () => {
    let told = 0
    const blocks = [0, 1, 2, 3, 4].map((n) => [n === 0 ? START : timer(n)])
    await write(blocks, { fileBytes: 1, maxFiles: 2, onHeadless: () => (told += 1) })
    expect(told).toBe(1)
    expect(() => read()).toThrow('no file of it begins with the start of a controller')
  })

  it('reports every corrupted byte and its position', async () => {
    await write([[START, timer(1)], [timer(2)]])
    const whole = readFileSync(first())
    const second = whole.length - (whole.readUInt32LE(HEADER_BYTES) + 44 + HEADER_BYTES)
    for (let at = 0; at < whole.length; at += 3) {
      const flipped = Buffer.from(whole)
      flipped[at] = (flipped[at] as number) ^ 1
      writeFileSync(first(), flipped)
      const block = at < whole.length - second ? HEADER_BYTES : whole.length - second
      if (at < HEADER_BYTES) expect(() => read(), `byte ${at}`).toThrow(first())
      else expect(() => read(), `byte ${at}`).toThrow(`what was written at byte ${block} `)
    }
  })

  it('reports a missing file in between, and an invalid file', async () => {
    await write([[START], [timer(1)], [timer(2)]], { fileBytes: 1 })
    const [, middle] = names()
    const bytes = readFileSync(join(dir, middle as string))
    rmSync(join(dir, middle as string))
    const { entries, notes } = read()
    expect(entries).toEqual([START])
    expect(notes.notes).toHaveLength(1)
    writeFileSync(join(dir, middle as string), bytes.subarray(0, bytes.length - 1))
    expect(() => read()).toThrow('which is truncated')
    writeFileSync(join(dir, middle as string), 'something else')
    expect(() => read()).toThrow('does not begin like a recording')
    expect(() => read(join(dir, 'not-there'))).toThrow('no such file or folder')
    rmSync(dir, { recursive: true })
    expect(() => read(dir)).toThrow('no such file or folder')
    const other = mkdtempSync(join(tmpdir(), 'headroom-recording-'))
    dir = other
    expect(() => read(dir)).toThrow('no file of a recording')
  })

  it('stops on an almost full disk, with one message to the controller and a note in the file', async () => {
    let free = Infinity
    const { written, stopped } = files({ freeBytes: () => Promise.resolve(free) })
    const written2 = (): Promise<void> =>
      new Promise((done) => {
        const look = (): void =>
          void (written.writtenBytes > 0 || stopped.length > 0 ? done() : setTimeout(look, 5))
        look()
      })
    written.append(START)
    await written2()
    free = 1_000_000
    written.append(timer(1))
    while (stopped.length === 0) await new Promise((done) => setTimeout(done, 5))
    written.append(timer(2))
    expect(written.isOpen).toBe(false)
    expect(stopped).toEqual(['only 0 MiB are free: they are left to the store'])
    await written.close()
    const { entries, notes } = read()
    expect(entries).toEqual([START])
    expect(notes.notes[0]).toContain('recording stopped at 1970-01-01T00:00:00.000Z: only 0 MiB are free')
  })

  it('stops if the folder cannot be created', async () => {
    writeFileSync(join(dir, 'file'), '')
    const { written, stopped } = files({ dir: join(dir, 'file', 'recording') })
    written.append(START)
    await written.close()
    expect(stopped).toHaveLength(1)
    expect(stopped[0]).toContain('ENOTDIR')
  })

  it.each([0, 1, 200, 401])('contains the state at a start as it was, with %i open tasks', async (count) => {
    const { written } = files()
    const openTasks = Array.from({ length: count }, (_, i) => aTask({ seq: i + 1, name: `[]}} ${i}` }))
    const state = { ...(await createMemoryStore().load()), openTasks }
    const loaded: RecordedEntry = { k: 'loaded', at: 5, draws: [['a', 1]], state }
    for (const entry of [START, loaded, timer(6)]) written.append(entry)
    await written.close()
    expect([...readRecording(dir, newReadNotes())]).toEqual([START, loaded, timer(6)])
  })

  it('continues after a start with more open tasks than may wait for the disk', async () => {
    const { written, stopped } = files({ fileBytes: 1e9 })
    const openTasks = Array.from({ length: 700 }, (_, i) => aTask({ seq: i + 1, name: 'x'.repeat(100_000) }))
    written.append({ k: 'loaded', at: 5, state: { ...(await createMemoryStore().load()), openTasks } })
    await written.close()
    expect([stopped, written.writtenBytes > HEADER_BYTES]).toEqual([[], true])
  })

  it('stops if the disk is too slow for the waiting data', () => {
    const { written, stopped } = files({ freeBytes: () => new Promise(() => {}) })
    const large = { ...START, version: 'x'.repeat(1_000_000) }
    for (let i = 0; i < 80 && written.isOpen; i++) written.append(large)
    expect(stopped).toEqual(['the disk is too slow'])
  })

  it('is flushed at once by a process that crashes', async () => {
    const { written } = files()
    written.append(START)
    while (written.writtenBytes === 0) await new Promise((done) => setTimeout(done, 5))
    written.append(timer(1))
    written.flushNow()
    expect(read().entries).toEqual([START, timer(1)])
  })
})
