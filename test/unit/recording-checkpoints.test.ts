/**
 * A recording removes old files, and the rest is decided again from a checkpoint: after any crash, and in any
 * range.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readCheckpoint, writeCheckpoint } from '../../controller/adapters/recording/checkpoint-file.ts'
import {
  newReadNotes,
  readRecording,
  type ReadNotes,
} from '../../controller/adapters/recording/read-recording.ts'
import {
  createRecordingFiles,
  type RecordingFilesOptions,
} from '../../controller/adapters/recording/write-recording.ts'
import type { RecordedEntry } from '../../controller/ports/recording-log.ts'
import { compactInThread, compactRecording } from '../../services/controller/recording.ts'
import { recordScenario } from '../../simulator/experiment/recording/record-scenario.ts'
import { redecide } from '../../simulator/experiment/recording/redecide.ts'
import { violationsOf } from '../support/fault-schedule.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const FILES = 7
const KEPT = 3
let folder = ''
/** The complete recording: several controllers, each ended by a kill. */
let entries: RecordedEntry[] = []
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-checkpoints-'))
  const recording = new RecordingInMemory()
  await violationsOf(5, { watch: recording.recorder })
  const all = recording.entries()
  // The longest run of a controller: all its files belong to one run.
  const starts = all.flatMap((entry, i) => (entry.k === 'start' ? [i] : []))
  const lives = starts.map((from, i) => all.slice(from, starts[i + 1]))
  entries = lives.reduce((longest, life) => (life.length > longest.length ? life : longest))
  await write(join(folder, 'kept'), { fold: compactRecording })
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes each part as a file. Returns the messages about files removed without a checkpoint. */
async function write(dir: string, options: Partial<RecordingFilesOptions>): Promise<readonly string[]> {
  const told: string[] = []
  const files = createRecordingFiles({
    dir,
    fileBytes: 1,
    maxFiles: KEPT,
    version: 'test',
    now: () => 0,
    onStopped: (reason) => told.push(reason),
    onHeadless: (reason) => told.push(reason),
    freeBytes: () => Promise.resolve(Infinity),
    ...options,
  })
  const size = Math.ceil(entries.length / FILES)
  for (let part = 0; part < FILES; part++) {
    const before = files.writtenBytes
    for (const entry of entries.slice(part * size, (part + 1) * size)) files.append(entry)
    while (files.writtenBytes === before) await new Promise((done) => setTimeout(done, 5))
    // At least as long as a file of a live controller covers.
    if (options.fold === compactRecording) await until(() => names(dir).length <= KEPT)
  }
  await files.close()
  return told
}

/** Of the main thread for a core, and of the process when memory runs out. */
const priorities = (): readonly unknown[] => [
  getPriority(process.pid),
  process.platform === 'linux' ? readFileSync('/proc/self/oom_score_adj', 'utf8') : null,
]

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((done) => setTimeout(done, 5))
}

const names = (dir: string, end = '.recording'): string[] =>
  readdirSync(dir)
    .filter((name) => name.endsWith(end))
    .sort((a, b) => (a < b ? -1 : 1))
const fileOf = (dir: string, place: number): string => join(dir, names(dir)[place] as string)

function copy(): string {
  const to = mkdtempSync(join(folder, 'copy-'))
  cpSync(join(folder, 'kept'), to, { recursive: true })
  return to
}

async function decided(path: string): Promise<{ decisions: number; events: number; notes: ReadNotes }> {
  const notes = newReadNotes()
  const { difference, decisions, events } = await redecide(readRecording(path, notes))
  expect(difference).toBeNull()
  return { decisions, events, notes }
}

/** Number of events recorded after the given number of files. */
function eventsFrom(part: number): number {
  let from = part * Math.ceil(entries.length / FILES)
  // The outcome of an input is recorded before it: the checkpoint contains it.
  while (entries[from - 1]?.k === 'commit') from -= 1
  return entries.slice(from).flatMap((entry) => (entry.k === 'commit' ? entry.events : [])).length
}

describe('a recording whose first files were removed', () => {
  it('is decided again from the checkpoint of the first remaining file', async () => {
    const dir = join(folder, 'kept')
    expect(names(dir)).toHaveLength(KEPT)
    expect(names(dir, '.checkpoint')).toEqual([names(dir)[0]?.replace('recording', 'checkpoint')])
    const { events, notes } = await decided(dir)
    expect(events).toBe(eventsFrom(FILES - KEPT))
    expect(events).toBeGreaterThan(20)
    expect(notes.notes.join()).toContain('continues from its checkpoint of')
  })

  it('is decided again from any file, after the files before it', async () => {
    const { events, notes } = await decided(fileOf(join(folder, 'kept'), 2))
    expect(events).toBe(eventsFrom(FILES - KEPT))
    expect(notes.notes.join()).toContain('what is before it')
  })

  it('yields a scenario of a range inside a later file', async () => {
    const inputs = entries.filter((entry) => entry.k !== 'start' && entry.k !== 'commit')
    const [from, to] = [inputs.at(Math.floor(inputs.length * 0.8))?.at ?? 0, inputs.at(-1)?.at ?? 0]
    const options = { from, to, name: 'range' }
    const late = await recordScenario(readRecording(join(folder, 'kept'), newReadNotes()), options)
    expect(late).toEqual(await recordScenario(entries, options))
    expect(late?.nodes).toBeGreaterThan(0)
    const whole = await recordScenario(readRecording(join(folder, 'kept'), newReadNotes()), {
      from: null,
      to: null,
      name: 'whole',
    })
    // When the first node is up there.
    expect(whole?.from).toBeGreaterThanOrEqual(
      readCheckpoint(fileOf(join(folder, 'kept'), 0))?.at ?? Infinity,
    )
  })

  it('loses nothing when it ends during a checkpoint, and finishes it at the next start', async () => {
    const dir = mkdtempSync(join(folder, 'crash-'))
    const stuck = (_: string, next: string, signal: AbortSignal): Promise<void> => {
      writeFileSync(`${next.replace('recording', 'checkpoint')}.new`, 'half of it')
      return new Promise((_done, failed) =>
        signal.addEventListener('abort', () => failed(new Error('ended'))),
      )
    }
    expect(await write(dir, { fold: stuck })).toEqual([])
    expect(names(dir)).toHaveLength(FILES)
    expect((await decided(dir)).events).toBe(eventsFrom(0))

    const next = createRecordingFiles({
      dir,
      fileBytes: 1,
      maxFiles: KEPT,
      version: 'test',
      now: () => 0,
      onStopped: () => {},
      fold: compactRecording,
    })
    next.append(entries[0] as RecordedEntry)
    await until(() => names(dir).length === KEPT)
    await next.close()
    expect(names(dir, '.new')).toEqual([])
    expect((await decided(dir)).events).toBe(eventsFrom(FILES - KEPT + 1))
  })

  it('continues from the remaining file if it ended between checkpoint and removal', async () => {
    const dir = copy()
    await compactRecording(fileOf(dir, 0), fileOf(dir, 1))
    expect(names(dir, '.checkpoint')).toHaveLength(2)
    expect((await decided(dir)).events).toBe(eventsFrom(FILES - KEPT))
    rmSync(fileOf(dir, 0))
    expect((await decided(dir)).events).toBe(eventsFrom(FILES - KEPT + 1))
  })

  it('keeps a limited number of files if checkpoints take too long', async () => {
    const dir = mkdtempSync(join(folder, 'slow-'))
    const stuck = (_first: string, _next: string, signal: AbortSignal): Promise<void> =>
      new Promise((_done, failed) => signal.addEventListener('abort', () => failed(new Error('given up'))))
    expect(await write(dir, { fold: stuck, maxFiles: 2 })).toEqual(['checkpoints take longer than files'])
    expect(names(dir).length).toBeLessThan(FILES)
  })

  it('reports once why there is no checkpoint', async () => {
    const dir = mkdtempSync(join(folder, 'headless-'))
    const told = await write(dir, { fold: () => Promise.reject(new Error('no room')) })
    expect(told).toEqual(['no room'])
    await expect(decided(dir)).rejects.toThrow('with a checkpoint')
  })

  it('is refused if its checkpoint is damaged, or of another file or format', async () => {
    const dir = copy()
    const path = fileOf(dir, 0).replace('recording', 'checkpoint')
    const bytes = readFileSync(path)
    const flipped = Buffer.from(bytes)
    flipped[bytes.length - 9] = (flipped[bytes.length - 9] as number) ^ 1
    writeFileSync(path, flipped)
    await expect(decided(dir)).rejects.toThrow(path)
    writeFileSync(path, bytes)
    cpSync(path, fileOf(dir, 1).replace('recording', 'checkpoint'))
    expect(() => readCheckpoint(fileOf(dir, 1))).toThrow('belongs to another file')
    const checkpoint = readCheckpoint(fileOf(dir, 0))
    if (checkpoint === null) throw new Error('no checkpoint')
    await writeCheckpoint(fileOf(dir, 0), { ...checkpoint, format: 99 })
    await expect(decided(dir)).rejects.toThrow('format 99')
  })

  it('is compacted by a thread that ends when aborted and leaves the process its priority', async () => {
    const dir = copy()
    const before = priorities()
    await compactInThread(fileOf(dir, 0), fileOf(dir, 1), new AbortController().signal)
    expect(priorities()).toEqual(before)
    rmSync(fileOf(dir, 0))
    expect((await decided(dir)).events).toBe(eventsFrom(FILES - KEPT + 1))
    await expect(compactInThread(fileOf(dir, 0), fileOf(dir, 1), AbortSignal.abort())).rejects.toThrow(
      'ended with',
    )
    await expect(
      compactInThread(join(dir, 'none'), fileOf(dir, 0), new AbortController().signal),
    ).rejects.toThrow('none')
  })
})
