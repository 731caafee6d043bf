/**
 * Content on the broker, addressed by hash: compressed, in chunks that fit into a message. Sizes in a
 * reference are limits, not promises.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import { sha256 } from '../run-store.ts'
import { CHUNK_BYTES, type BlobRef } from './blob-ref.ts'
import type { JetStream } from './jetstream.ts'
import { blobSubject, DATA, type BlobKind } from './sweep-subjects.ts'

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
    throw new Error(`content ${hash} was received with changes`)
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
