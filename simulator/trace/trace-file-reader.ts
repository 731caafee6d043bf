import { type FileBytes, openBytes } from './file-bytes.ts'
import { parseHeader } from './header-line.ts'
import { LineProblem } from './json-fields.ts'
import { lineBlocks } from './line-blocks.ts'
import { parseTask } from './task-line.ts'
import { TraceError } from './trace-error.ts'
import type { TraceHeader, TraceTask } from './trace-format.ts'

/** A trace whose header has been read. Its tasks are streamed once, in bounded memory. */
export interface TraceFile {
  readonly header: TraceHeader
  /**
   * Batches as they are read from disk: the fast way. Use this or `tasks`, once. Throws TraceError at the
   * first invalid line.
   */
  batches(): AsyncIterable<readonly TraceTask[]>
  tasks(): AsyncIterable<TraceTask>
  /**
   * SHA-256 of the uncompressed content, so that a trace has the same identity with and without gzip. Throws
   * before the last task was read.
   */
  sha256(): string
  /** How much of the file was read, 0 to 1. */
  readFraction(): number
  /** Closes the file if the tasks are not needed. */
  close(): void
}

export interface TraceReadOptions {
  /**
   * `by-arrival` (default) refuses a line whose `at` is below that of the line before; `any` accepts any
   * order.
   */
  readonly order?: 'by-arrival' | 'any'
}

/**
 * Opens a trace (gzip if the file begins with the gzip magic) and reads its header. Memory is bounded, so ids
 * are not checked for uniqueness here. Throws TraceError with file, line and field.
 */
export async function openTrace(file: string, options: TraceReadOptions = {}): Promise<TraceFile> {
  const source = await openBytes(file)
  const blocks = lineBlocks(source)
  const { header, firstBlock } = await readHeader(source, blocks)
  const batches = (): AsyncIterable<readonly TraceTask[]> =>
    taskBatches(file, firstBlock, blocks, options.order ?? 'by-arrival')
  return {
    header,
    batches,
    tasks: () => flatten(batches()),
    sha256: () => source.sha256(),
    readFraction: () => source.readFraction(),
    close: () => source.close(),
  }
}

async function readHeader(
  source: FileBytes,
  blocks: AsyncIterator<readonly string[]>,
): Promise<{ header: TraceHeader; firstBlock: readonly string[] }> {
  const { file } = source
  try {
    const first = await blocks.next()
    if (first.done === true)
      throw new TraceError({ file, line: 1 }, 'is empty: a trace begins with a header line')
    return { header: parseLine(file, 1, first.value[0]!, parseHeader), firstBlock: first.value }
  } catch (error) {
    source.close()
    throw error
  }
}

async function* taskBatches(
  file: string,
  firstBlock: readonly string[],
  blocks: AsyncIterator<readonly string[]>,
  order: 'by-arrival' | 'any',
): AsyncIterable<readonly TraceTask[]> {
  let line = 0
  let latestAt = 0
  let block: readonly string[] = firstBlock
  try {
    for (;;) {
      const tasks: TraceTask[] = []
      for (const text of block) {
        line++
        if (line === 1 || isBlank(text)) continue
        const task = parseLine(file, line, text, parseTask)
        if (task.at < latestAt && order === 'by-arrival') {
          throw new TraceError(
            { file, line, field: 'at' },
            `falls from ${latestAt} to ${task.at}: tasks must be in the order of arrival`,
          )
        }
        latestAt = task.at
        tasks.push(task)
      }
      yield tasks
      const next = await blocks.next()
      if (next.done === true) return
      block = next.value
    }
  } finally {
    await blocks.return?.()
  }
}

/** Also the \r of a line that ended in \r\n; JSON treats it as a blank. */
function isBlank(text: string): boolean {
  return text.length === 0 || text.trim().length === 0
}

function parseLine<T>(file: string, line: number, text: string, parse: (text: string) => T): T {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof LineProblem) {
      throw new TraceError(
        error.field === undefined ? { file, line } : { file, line, field: error.field },
        error.message,
        { cause: error },
      )
    }
    throw error
  }
}

async function* flatten(batches: AsyncIterable<readonly TraceTask[]>): AsyncIterable<TraceTask> {
  for await (const batch of batches) yield* batch
}
