/** Reads one recording file, block by block, and verifies the hash of each. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { inflateRawSync } from 'node:zlib'
import type { RecordedEntry } from '../../ports/recording-log.ts'
import {
  BLOCK_HEAD_BYTES,
  decodeBlockHead,
  decodeHeader,
  FORMAT_VERSION,
  hashOf,
  HEADER_BYTES,
} from './format.ts'
import type { FileHeader } from './format.ts'
import { RecordingError } from './recording-fault.ts'

/** Findings of a reader besides the entries. */
export interface ReadNotes {
  files: number
  blocks: number
  entries: number
  bytes: number
  /** Messages: torn ends, gaps, omissions at the beginning. */
  readonly notes: string[]
}

export function newReadNotes(): ReadNotes {
  return { files: 0, blocks: 0, entries: 0, bytes: 0, notes: [] }
}

export interface BlockEnd {
  readonly hash: string
  readonly isTorn: boolean
}

/** The entries of one file. */
export function* readBlocks(
  file: string,
  start: string,
  notes: ReadNotes,
): Generator<RecordedEntry, BlockEnd> {
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
      // Bytes that are zero after a crash of the host also count as a torn end.
      if (whole && read === null && !isEmpty(fd, at, size)) throw damaged(file, at, notes)
      if (read === null || read.length > size - at - BLOCK_HEAD_BYTES) {
        notes.notes.push(`${file}: its last ${size - at} bytes were written incompletely and are ignored`)
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
  return new RecordingError(
    `${file}: what was written at byte ${at} (after entry ${entries} of the recording) is not what ` +
      'is there now',
  )
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

export function headerOf(file: string): FileHeader {
  const fd = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(HEADER_BYTES)
    const read = readSync(fd, bytes, 0, HEADER_BYTES, 0)
    const header = read === HEADER_BYTES ? decodeHeader(bytes) : null
    if (header === null) throw new RecordingError(`${file}: the file does not begin like a recording`)
    if (header.headroom_recording !== FORMAT_VERSION) {
      throw new RecordingError(
        `${file}: it has format ${header.headroom_recording}; this version reads ${FORMAT_VERSION}`,
      )
    }
    return header
  } finally {
    closeSync(fd)
  }
}
