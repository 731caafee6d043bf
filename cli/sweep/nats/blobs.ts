/** Content of any size on the broker, by its hash: compressed, in chunks that fit into a message. What comes back is held against the hash. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { sha256 } from '../run-store.ts'
import type { JetStream } from './jetstream.ts'
import { blobSubject, DATA } from './sweep-subjects.ts'

export interface BlobRef {
  /** Of the content, in hex. */
  readonly sha256: string
  readonly bytes: number
  readonly chunks: number
}

/** Half of what a broker takes unless it was told otherwise. */
const CHUNK_BYTES = 512 * 1024
/** Of the content, so that a hostile compressed blob does not fill the memory. */
const MAX_BLOB_BYTES = 2 * 1024 * 1024 * 1024
/** The journal's text shrinks to a tenth even so. */
const QUICK = { level: 1 } as const

/** Resolves when all of it is on the broker's disk. */
export async function putBlob(stream: JetStream, sweep: string, content: Uint8Array): Promise<BlobRef> {
  const hash = sha256(content)
  const packed = gzipSync(content, QUICK)
  const chunks = Math.max(1, Math.ceil(packed.length / CHUNK_BYTES))
  for (let chunk = 0; chunk < chunks; chunk++) {
    const piece = packed.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES)
    await stream.publish(blobSubject(sweep, hash, chunk), piece)
  }
  return { sha256: hash, bytes: content.length, chunks }
}

/** Throws when it is not there or not what it should be. */
export async function getBlob(stream: JetStream, sweep: string, { sha256: hash, bytes, chunks }: BlobRef): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for (let chunk = 0; chunk < chunks; chunk++) {
    const piece = await stream.last(DATA, blobSubject(sweep, hash, chunk))
    if (piece === null) throw new Error(`content ${hash} is not on the broker any more`)
    pieces.push(piece)
  }
  const content = gunzipSync(Buffer.concat(pieces), { maxOutputLength: Math.min(bytes + 1, MAX_BLOB_BYTES) })
  if (sha256(content) !== hash) throw new Error(`content ${hash} has come back changed`)
  return content
}
