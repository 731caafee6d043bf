/** Reads recordings: the files of a folder in order, or one file, block by block, each held against its hash. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import type { RecordedEntry } from '../../ports/recording-log.ts'
import { BLOCK_HEAD_BYTES, chainStart, decodeBlockHead, decodeHeader, FILE_NAME, FORMAT_VERSION, hashOf, HEADER_BYTES } from './format.ts'
import type { FileHeader } from './format.ts'
import { RecordingError } from './recording-fault.ts'

/** What a reader learns beside the entries. */
export interface ReadNotes {
  files: number
  blocks: number
  entries: number
  bytes: number
  /** In words for people: torn ends, gaps, what was left out at the beginning. */
  readonly notes: string[]
}

export function newReadNotes(): ReadNotes {
  return { files: 0, blocks: 0, entries: 0, bytes: 0, notes: [] }
}

/**
 * The entries of a recording, from its first controller start on: `path` is a folder of files, or one file and those after it of the same run. An end that
 * was never written whole is left out and noted.
 * @throws RecordingError for a path without a recording, and at the first byte that is not as it was written.
 */
export function* readRecording(path: string, notes: ReadNotes): Generator<RecordedEntry> {
  let previous: { readonly header: FileHeader; readonly hash: string; readonly isTorn: boolean } | null = null
  let hasBegun = false
  let leftOut: string | null = null
  for (const file of filesOf(path)) {
    const header = headerOf(file)
    const follows: boolean = previous !== null && header.run === previous.header.run && header.part === previous.header.part + 1
    if (!follows) {
      hasBegun = header.part === 0
      if (!hasBegun && header.run !== leftOut)
        notes.notes.push(`${file} begins in the middle of a run whose first file is gone: it is left out`)
      if (!hasBegun) leftOut = header.run
    } else if (previous !== null && previous.hash !== header.previous) {
      throw new RecordingError(`${file}: it does not go on where the file before it ends${previous.isTorn ? ', whose end is missing' : ''}`)
    }
    if (!hasBegun && !follows) {
      previous = null
      continue
    }
    const end: BlockEnd = yield* readBlocks(file, chainStart(header), notes)
    previous = { header, ...end }
    notes.files += 1
    if (header.gap !== null) notes.notes.push(`${file}: recording stopped at ${header.gap.at}: ${header.gap.reason}`)
  }
  if (notes.files === 0) throw new RecordingError(`${path}: no file of it begins with the start of a controller`)
}

interface BlockEnd {
  readonly hash: string
  readonly isTorn: boolean
}

function* readBlocks(file: string, start: string, notes: ReadNotes): Generator<RecordedEntry, BlockEnd> {
  const fd = openSync(file, 'r')
  try {
    const { size } = fstatSync(fd)
    let hash = start
    let at = HEADER_BYTES
    const head = Buffer.alloc(BLOCK_HEAD_BYTES)
    while (at < size) {
      const whole = size - at >= BLOCK_HEAD_BYTES
      if (whole) readSync(fd, head, 0, BLOCK_HEAD_BYTES, at)
      const read = whole ? decodeBlockHead(head) : null
      // Bytes that a crash of the host left empty are an end that was never written, too.
      if (whole && read === null && !isEmpty(fd, at, size)) throw damaged(file, at, notes)
      if (read === null || read.length > size - at - BLOCK_HEAD_BYTES) {
        notes.notes.push(`${file}: its last ${size - at} bytes were never written whole; they are left out`)
        return { hash, isTorn: true }
      }
      const content = Buffer.alloc(read.length)
      readSync(fd, content, 0, read.length, at + BLOCK_HEAD_BYTES)
      if (hashOf(hash, head, content) !== read.hash) throw damaged(file, at, notes)
      notes.blocks += 1
      for (const line of linesOf(content)) {
        notes.entries += 1
        yield JSON.parse(line) as RecordedEntry
      }
      hash = read.hash
      at += BLOCK_HEAD_BYTES + read.length
      notes.bytes += BLOCK_HEAD_BYTES + read.length
    }
    return { hash, isTorn: false }
  } finally {
    closeSync(fd)
  }
}

function linesOf(content: Buffer): string[] {
  return inflateRawSync(content).toString('utf8').split('\n').slice(0, -1)
}

function damaged(file: string, at: number, { entries }: ReadNotes): RecordingError {
  return new RecordingError(`${file}: what was written at byte ${at} (after entry ${entries} of the recording) is not what is there now`)
}

function isEmpty(fd: number, from: number, size: number): boolean {
  const chunk = Buffer.alloc(65_536)
  for (let at = from; at < size;) {
    const read = readSync(fd, chunk, 0, Math.min(chunk.length, size - at), at)
    if (read === 0) return true
    for (let i = 0; i < read; i++) if (chunk[i] !== 0) return false
    at += read
  }
  return true
}

function headerOf(file: string): FileHeader {
  const fd = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(HEADER_BYTES)
    const read = readSync(fd, bytes, 0, HEADER_BYTES, 0)
    const header = read === HEADER_BYTES ? decodeHeader(bytes) : null
    if (header === null) throw new RecordingError(`${file}: it does not begin as a recording does`)
    if (header.headroom_recording !== FORMAT_VERSION) {
      throw new RecordingError(`${file}: it has format ${header.headroom_recording}; this version reads ${FORMAT_VERSION}`)
    }
    return header
  } finally {
    closeSync(fd)
  }
}

function filesOf(path: string): readonly string[] {
  const folder = isFolder(path) ? path : dirname(path)
  const names = readdirSync(folder)
    .filter((name) => FILE_NAME.test(name))
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).size > 0)
  if (folder === path) {
    if (names.length === 0) throw new RecordingError(`${path}: there is no file of a recording in it`)
    return names
  }
  if (!FILE_NAME.test(basename(path))) return [path]
  const run = headerOf(path).run
  return names.filter((name) => basename(name) >= basename(path) && headerOf(name).run === run)
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    throw new RecordingError(`${path}: there is no such file or folder`)
  }
}
