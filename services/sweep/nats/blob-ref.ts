/** The name of content on the broker, and its maximum size. */
export interface BlobRef {
  /** Of the content, in hex. */
  readonly sha256: string
  /** Of the content, uncompressed. */
  readonly bytes: number
  readonly chunks: number
}

/**
 * A chunk with its headers fits into the 256 KiB of a message that the shipped broker configuration allows.
 */
export const CHUNK_BYTES = 192 * 1024
/** Uncompressed; the maximum size of a trace. */
export const MAX_BLOB_BYTES = 1024 * 1024 * 1024
/** Text that does not compress grows by less than a thousandth. */
export const MAX_BLOB_CHUNKS = Math.ceil((MAX_BLOB_BYTES * 1.001) / CHUNK_BYTES) + 1
