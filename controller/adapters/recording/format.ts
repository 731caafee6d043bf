/**
 * A recording file: a header of one sector, then blocks, each a deflated list of entries (JSON, one per
 * line). The hash of a block covers the previous one, across the files of one controller, so that changes,
 * gaps and reordering are detected and located (docs/recording.md).
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const RECORDING_FOLDER = 'recording'
export const FILE_NAME = /^\d{10}\.recording$/
/** The state from which the file with the same number continues after earlier files were removed. */
export const CHECKPOINT_NAME = /^\d{10}\.checkpoint$/
export const FORMAT_VERSION = 1
/** One sector: written atomically, also on a full disk. */
export const HEADER_BYTES = 512
/** Before a block's content: its length, its number of entries, CRC-32 of both, SHA-256. */
export const BLOCK_HEAD_BYTES = 44
/** Previous hash in the first file of a run. */
export const GENESIS = '0'.repeat(64)

export interface FileHeader {
  readonly headroom_recording: number
  /** One for each start of a controller. */
  readonly run: string
  /** Zero-based index of the file. */
  readonly part: number
  /** Hash of the last block of the previous file; GENESIS in the first. */
  readonly previous: string
  /** Version of the program. */
  readonly version: string
  readonly opened: string
  /** Recording stopped here, and why; later entries are missing. */
  readonly gap: { readonly at: string; readonly reason: string } | null
}

const MAX_REASON_LENGTH = 120

export function fileName(number: number): string {
  return `${String(number).padStart(10, '0')}.recording`
}

/** Name of the checkpoint from which this recording file continues. */
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

/** Covers all fields but the gap. */
function checkOf(header: FileHeader): number {
  return crc32(JSON.stringify({ ...header, gap: null }))
}

/** The hash that precedes the first block: that of the header without the gap, which is written later. */
export function chainStart(header: FileHeader): string {
  return hash('sha256', JSON.stringify({ ...header, gap: null }), 'hex')
}

/** Returns null for anything else. */
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

/** Returns null for damaged data. */
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

/** SHA-256 of the previous hash, the first 12 bytes of the block's head, and its content. */
export function hashOf(previous: string, head: Buffer, content: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from(previous, 'hex'), head.subarray(0, 12), content]), 'hex')
}
