import { createHash, type Hash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdtemp, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { formatHeader } from './header-line.ts'
import { formatTask } from './task-line.ts'
import type { TraceHeader, TraceTask } from './trace-format.ts'

export interface WrittenTrace {
  readonly tasks: number
  /** SHA-256 of the uncompressed content, as from the reader. */
  readonly sha256: string
}

/**
 * Writes a trace, with gzip if the name ends in `.gz`, streamed. The file appears completely or not at all:
 * it is written to a temporary name, flushed to disk, and renamed; special files (/dev/null, a pipe) are
 * written directly. Throws RangeError if `at` decreases from one task to the next, and errors of the file
 * system.
 */
export async function writeTrace(
  file: string,
  header: TraceHeader,
  tasks: AsyncIterable<TraceTask> | Iterable<TraceTask>,
): Promise<WrittenTrace> {
  const found = await stat(file).catch(() => null)
  if (found !== null && !found.isFile())
    return writeInto(createWriteStream(file), file.endsWith('.gz'), header, tasks)
  const place = found === null ? file : await realpath(file)
  const folder = await mkdtemp(join(dirname(place), `.${basename(place)}-`))
  const partial = join(folder, basename(place))
  try {
    const written = await writeInto(
      createWriteStream(partial, { flush: true }),
      file.endsWith('.gz'),
      header,
      tasks,
    )
    await rename(partial, place)
    return written
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeInto(
  sink: WriteStream,
  isCompressed: boolean,
  header: TraceHeader,
  tasks: AsyncIterable<TraceTask> | Iterable<TraceTask>,
): Promise<WrittenTrace> {
  const hash = createHash('sha256')
  const written = { tasks: 0 }
  const blocks = textBlocks(header, tasks, hash, written)
  if (isCompressed) await pipeline(blocks, createGzip(), sink)
  else await pipeline(blocks, sink)
  return { tasks: written.tasks, sha256: hash.digest('hex') }
}

const BLOCK_CHARACTERS = 65_536

async function* textBlocks(
  header: TraceHeader,
  tasks: AsyncIterable<TraceTask> | Iterable<TraceTask>,
  hash: Hash,
  written: { tasks: number },
): AsyncGenerator<string> {
  let block = `${formatHeader(header)}\n`
  let latestAt = 0
  for await (const task of tasks) {
    if (task.at < latestAt)
      throw new RangeError(
        `task ${task.id} arrives at ${task.at}, before ${latestAt}: tasks must be in the order of arrival`,
      )
    latestAt = task.at
    block += `${formatTask(task)}\n`
    written.tasks++
    if (block.length >= BLOCK_CHARACTERS) {
      hash.update(block)
      yield block
      block = ''
    }
  }
  hash.update(block)
  yield block
}
