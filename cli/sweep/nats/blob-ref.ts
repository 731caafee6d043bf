/** What names a content on the broker, and how large one may be. */
export interface BlobRef {
  /** Of the content, in hex. */
  readonly sha256: string
  /** Of the content, uncompressed. */
  readonly bytes: number
  readonly chunks: number
}

/** A chunk and its headers fit into the 256 KiB of a message that the shipped broker configuration allows. */
export const CHUNK_BYTES = 192 * 1024
/** Of the content, uncompressed: as large as a trace may be. */
export const MAX_BLOB_BYTES = 1024 * 1024 * 1024
/** Compressed text that does not shrink grows by less than a thousandth. */
export const MAX_BLOB_CHUNKS = Math.ceil((MAX_BLOB_BYTES * 1.001) / CHUNK_BYTES) + 1
