/**
 * A file of a recording: a header of one sector, then blocks, each a deflated list of entries (JSON, one a
 * line). The hash of a block covers the one before, across the files of one controller, so that a change, a
 * gap or another order shows and says where (docs/recording.md).
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const RECORDING_FOLDER = 'recording'
export const FILE_NAME = /^\d{10}\.recording$/
/** What the file of the same number goes on from, when those before it have made room. */
export const CHECKPOINT_NAME = /^\d{10}\.checkpoint$/
export const FORMAT_VERSION = 1
/** One sector: it is written in one go, also when the disk is full. */
export const HEADER_BYTES = 512
/** Before a block's content: its length, how many entries it holds, CRC-32 of these two, SHA-256. */
export const BLOCK_HEAD_BYTES = 44
/** What stands for the file before in the first of a run. */
export const GENESIS = '0'.repeat(64)

export interface FileHeader {
  readonly headroom_recording: number
  /** One for each start of a controller. */
  readonly run: string
  /** Its how manieth file, from 0. */
  readonly part: number
  /** Hash of the last block of the file before; GENESIS in the first. */
  readonly previous: string
  /** Of the program. */
  readonly version: string
  readonly opened: string
  /** Recording stopped here, and why; what came afterwards is missing. */
  readonly gap: { readonly at: string; readonly reason: string } | null
}

const MAX_REASON_LENGTH = 120

export function fileName(number: number): string {
  return `${String(number).padStart(10, '0')}.recording`
}

/** Of the checkpoint with which this file of a recording begins. */
export function checkpointName(recording: string): string {
  return recording.replace(/\.recording$/, '.checkpoint')
}

export function encodeHeader(header: FileHeader): Buffer {
  const { gap } = header
  const short = {
    ...header,
    gap: gap === null ? null : { ...gap, reason: gap.reason.slice(0, MAX_REASON_LENGTH) },
  }
  const text = JSON.stringify({ ...short, crc32: checkOf(header) })
  if (Buffer.byteLength(text) >= HEADER_BYTES)
    throw new Error('broken invariant: the header of a recording is too long')
  return Buffer.from(`${text.padEnd(HEADER_BYTES - 1 - (Buffer.byteLength(text) - text.length))}\n`)
}

/** Of all but the gap. */
function checkOf(header: FileHeader): number {
  return crc32(JSON.stringify({ ...header, gap: null }))
}

/** What the first block of a file hangs on: its header, but for the gap, which is written later. */
export function chainStart(header: FileHeader): string {
  return hash('sha256', JSON.stringify({ ...header, gap: null }), 'hex')
}

/** Null: it is none. */
export function decodeHeader(bytes: Buffer): FileHeader | null {
  try {
    const { crc32: check, ...header } = JSON.parse(bytes.toString('utf8')) as FileHeader & {
      readonly crc32: number
    }
    return check === checkOf(header) ? header : null
  } catch {
    return null
  }
}

export function encodeBlock(
  previous: string,
  content: Buffer,
  entries: number,
): { readonly bytes: Buffer; readonly hash: string } {
  const head = Buffer.alloc(BLOCK_HEAD_BYTES)
  head.writeUInt32LE(content.length, 0)
  head.writeUInt32LE(entries, 4)
  head.writeUInt32LE(crc32(head.subarray(0, 8)), 8)
  const own = hashOf(previous, head, content)
  head.write(own, 12, 'hex')
  return { bytes: Buffer.concat([head, content]), hash: own }
}

/** Null: these bytes are not as they were written. */
export function decodeBlockHead(
  head: Buffer,
): { readonly length: number; readonly entries: number; readonly hash: string } | null {
  if (crc32(head.subarray(0, 8)) !== head.readUInt32LE(8)) return null
  return {
    length: head.readUInt32LE(0),
    entries: head.readUInt32LE(4),
    hash: head.toString('hex', 12, BLOCK_HEAD_BYTES),
  }
}

/** SHA-256 of the hash before, the first 12 bytes of the block's head, and its content. */
export function hashOf(previous: string, head: Buffer, content: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from(previous, 'hex'), head.subarray(0, 12), content]), 'hex')
}
