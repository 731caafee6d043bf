import type { FileBytes } from './file-bytes.ts'
import { TraceError } from './trace-error.ts'

/**
 * Lines of a UTF-8 file without their line feeds (a \r before one remains), in blocks that are never empty.
 * Throws TraceError.
 */
export async function* lineBlocks(source: FileBytes): AsyncGenerator<readonly string[]> {
  const { file } = source
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest: Buffer[] = []
  let restBytes = 0
  let lines = 0
  const split = (bytes: Buffer): string[] => {
    const block = decode(decoder, bytes, { file, line: lines + 1 }).split('\n')
    if (lines === 0 && block[0]!.startsWith(BYTE_ORDER_MARK)) block[0] = block[0]!.slice(1)
    lines += block.length
    return block
  }
  for await (const chunk of source.chunks) {
    const end = chunk.lastIndexOf(NEWLINE)
    if (end === -1) {
      rest.push(chunk)
      restBytes += chunk.length
      if (restBytes > MAX_LINE_BYTES)
        throw new TraceError({ file, line: lines + 1 }, `is longer than ${MAX_LINE_BYTES} bytes`)
      continue
    }
    rest.push(chunk.subarray(0, end))
    yield split(rest.length === 1 ? rest[0]! : Buffer.concat(rest))
    rest = end + 1 === chunk.length ? [] : [chunk.subarray(end + 1)]
    restBytes = chunk.length - end - 1
  }
  if (rest.length > 0) yield split(Buffer.concat(rest))
}

const NEWLINE = 0x0a
const BYTE_ORDER_MARK = '\u{feff}'
/** 64 MiB: a task of 5 million phases. */
const MAX_LINE_BYTES = 67_108_864

function decode(
  decoder: InstanceType<typeof TextDecoder>,
  bytes: Buffer,
  where: { file: string; line: number },
): string {
  try {
    return decoder.decode(bytes)
  } catch (error) {
    throw new TraceError(where, 'this line or one soon after it is not UTF-8', { cause: error })
  }
}

export interface NumberedLine {
  readonly line: number
  readonly text: string
}

/** One line at a time, trimmed; blank ones are skipped. */
export async function* textLines(source: FileBytes): AsyncGenerator<NumberedLine> {
  let line = 0
  for await (const block of lineBlocks(source)) {
    for (const raw of block) {
      line += 1
      const text = raw.trim()
      if (text !== '') yield { line, text }
    }
  }
}
