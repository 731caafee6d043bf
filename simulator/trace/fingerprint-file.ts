import { openBytes } from './file-bytes.ts'

export interface TraceFingerprint {
  /** SHA-256 of the uncompressed content, in hex. */
  readonly sha256: string
  /** Number of tasks: the lines without the header. */
  readonly tasks: number
}

const NEWLINE = 0x0a

/** Reads a trace without parsing it. Throws TraceError if it cannot be read. */
export async function fingerprintTrace(file: string): Promise<TraceFingerprint> {
  const source = await openBytes(file)
  let lines = 0
  let last = NEWLINE
  for await (const chunk of source.chunks) {
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1
    last = chunk.at(-1) ?? last
  }
  if (last !== NEWLINE) lines += 1
  return { sha256: source.sha256(), tasks: Math.max(0, lines - 1) }
}
