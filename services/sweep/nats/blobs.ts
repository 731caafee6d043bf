/**
 * Content on the broker, addressed by hash: compressed, in chunks that fit into a message. Sizes in a
 * reference are limits, not promises.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import { sha256 } from '../run-store.ts'
import type { Delivery, JetStream } from './jetstream.ts'
import { DATA, DEAD_SUBJECT, blobSubject, type BlobKind } from './sweep-subjects.ts'

/** Fast compression still reduces the journal's text to a tenth. */
const QUICK = { level: 1 } as const
/** Maximum growth of compressed content over the content. */
const GZIP_OVERHEAD_BYTES = 64 * 1024

/** Resolves when all of it is on the broker's disk. */
export async function putBlob(
  stream: JetStream,
  sweep: string,
  kind: BlobKind,
  content: Uint8Array,
): Promise<BlobRef> {
  const hash = sha256(content)
  const packed = gzipSync(content, QUICK)
  const chunks = Math.max(1, Math.ceil(packed.length / CHUNK_BYTES))
  for (let chunk = 0; chunk < chunks; chunk++) {
    const piece = packed.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES)
    await stream.publish(blobSubject(sweep, kind, hash, chunk), piece)
  }
  return { sha256: hash, bytes: content.length, chunks }
}

/**
 * Throws when the content is missing, larger than stated, or has another hash. The reference was checked
 * (sweep-messages.ts).
 */
export async function getBlob(
  stream: JetStream,
  sweep: string,
  kind: BlobKind,
  ref: BlobRef,
): Promise<Buffer> {
  const { sha256: hash, bytes, chunks } = ref
  const pieces: Uint8Array[] = []
  let packedBytes = 0
  for (let chunk = 0; chunk < chunks; chunk++) {
    const piece = await stream.last(DATA, blobSubject(sweep, kind, hash, chunk))
    if (piece === null) throw new Error(`content ${hash} is no longer on the broker`)
    packedBytes += piece.length
    if (packedBytes > bytes + GZIP_OVERHEAD_BYTES) throw new Error(tooLarge(ref))
    pieces.push(piece)
  }
  const content = unpacked(Buffer.concat(pieces), ref)
  if (content.length !== bytes || sha256(content) !== hash)
    throw new Error(`content ${hash} was damaged in transit`)
  return content
}

function unpacked(packed: Buffer, ref: BlobRef): Buffer {
  try {
    // Empty content still needs a limit of at least 1.
    return gunzipSync(packed, { maxOutputLength: Math.max(1, ref.bytes) })
  } catch (cause) {
    const isLarger = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new Error(isLarger ? tooLarge(ref) : `content ${ref.sha256} cannot be unpacked`, { cause })
  }
}

function tooLarge({ sha256: hash, bytes }: BlobRef): string {
  return `content ${hash} is larger than the announced ${bytes} bytes`
}

/** The name of content on the broker, and its maximum size. */
export interface BlobRef {
  /** SHA-256 of the content, in hex. */
  readonly sha256: string
  /** Size of the uncompressed content. */
  readonly bytes: number
  readonly chunks: number
}

/**
 * A chunk with its headers fits into the 256 KiB of a message that the shipped broker configuration allows.
 */
const CHUNK_BYTES = 192 * 1024
/** Uncompressed; the maximum size of a trace. */
export const MAX_BLOB_BYTES = 1024 * 1024 * 1024
/** Text that does not compress grows by less than a thousandth. */
export const MAX_BLOB_CHUNKS = Math.ceil((MAX_BLOB_BYTES * 1.001) / CHUNK_BYTES) + 1

/** The beginning of the message is enough to identify it. */
const KEPT_BYTES = 4 * 1024

/** Resolves when the broker has stored the message and removed it from the queue. */
export async function moveToDeadLetters(
  stream: JetStream,
  { subject, data, deliveries, ack }: Delivery,
  why: string,
): Promise<void> {
  const head = Buffer.from(data.subarray(0, KEPT_BYTES)).toString('base64')
  await stream.publish(
    DEAD_SUBJECT,
    JSON.stringify({ why, subject, deliveries, bytes: data.length, head_base64: head }),
  )
  await ack()
}
