import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { TraceError } from './trace-error.ts'

const READ_BYTES = 1_048_576
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b])

/** The content of a file, uncompressed if it begins with the gzip magic, and hashed while it is read. */
export interface FileBytes {
  /** The path as given, for messages. */
  readonly file: string
  /**
   * Chunks in order; may be read once. Throws TraceError if the file cannot be read or its gzip is broken.
   * Leaving the loop early closes the file.
   */
  readonly chunks: AsyncIterable<Buffer>
  /** SHA-256 of the uncompressed content, in hex. Throws before everything was read. */
  sha256(): string
  /** Share of the stored file that was read, 0 to 1. */
  readFraction(): number
  /** Closes the file; does nothing at the end of the file. */
  close(): void
}

/** Throws TraceError if the file cannot be opened. */
export async function openBytes(file: string): Promise<FileBytes> {
  const { stream, readFraction } = await openStream(file)
  const hash = createHash('sha256')
  let digest: string | undefined
  return {
    file,
    chunks: (async function* () {
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          hash.update(chunk)
          yield chunk
        }
      } catch (error) {
        throw unreadable(file, error)
      }
      digest = hash.digest('hex')
    })(),
    sha256() {
      if (digest === undefined)
        throw new Error(`${file} was not read to its end: its sha256 is not known yet`)
      return digest
    },
    readFraction,
    close: () => void stream.destroy(),
  }
}

interface OpenStream {
  readonly stream: Readable
  readonly readFraction: () => number
}

async function openStream(file: string): Promise<OpenStream> {
  let handle: FileHandle | undefined
  try {
    handle = await open(file)
    const found = await handle.stat()
    const magic = await firstBytes(handle, GZIP_MAGIC.length)
    const rest = handle.createReadStream({
      ...(found.isFile() ? { start: 0 } : {}),
      highWaterMark: READ_BYTES,
    })
    const stored = found.isFile() ? rest : Readable.from(chunksOf(magic, rest), { objectMode: false })
    const readFraction = (): number => (found.size === 0 ? 0 : Math.min(1, rest.bytesRead / found.size))
    if (!magic.equals(GZIP_MAGIC)) return { stream: stored, readFraction }
    // Errors of either stream arrive at the reader of the last one.
    return { stream: pipeline(stored, createGunzip({ chunkSize: READ_BYTES }), () => {}), readFraction }
  } catch (error) {
    await handle?.close()
    throw unreadable(file, error)
  }
}

/** Fewer only at the end. Reads at the current position, because a pipe has no other. */
async function firstBytes(handle: FileHandle, count: number): Promise<Buffer> {
  const bytes = Buffer.alloc(count)
  let filled = 0
  while (filled < count) {
    const { bytesRead } = await handle.read(bytes, filled, count - filled, null)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

/** The data already read from a pipe, and the rest. */
async function* chunksOf(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first
  yield* rest
}

function unreadable(file: string, error: unknown): Error {
  switch ((error as { code?: string }).code ?? '') {
    case 'ENOENT':
      return new TraceError({ file }, 'no such file', { cause: error })
    case 'EISDIR':
      return new TraceError({ file }, 'is a folder', { cause: error })
    case 'EACCES':
      return new TraceError({ file }, 'may not be read', { cause: error })
    case 'Z_DATA_ERROR':
    case 'Z_BUF_ERROR':
      return new TraceError({ file }, `is broken or cut off gzip (${(error as Error).message})`, {
        cause: error,
      })
    default:
      return error as Error
  }
}
