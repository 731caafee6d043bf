import { createHash, type Hash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { formatHeader } from './header-line.ts'
import { formatTask } from './task-line.ts'
import type { TraceHeader, TraceTask } from './trace-format.ts'

export interface WrittenTrace {
  readonly tasks: number
  /** Of the uncompressed content, as the reader gives it. */
  readonly sha256: string
}

/**
 * Writes a trace, gzip when the name ends in `.gz`, streamed. The file appears whole or not at all: it is written beside its place, flushed to
 * disk, and renamed. Throws RangeError when `at` falls from one task to the next, and what the file system throws.
 */
export async function writeTrace(
  file: string,
  header: TraceHeader,
  tasks: AsyncIterable<TraceTask> | Iterable<TraceTask>,
): Promise<WrittenTrace> {
  const folder = await mkdtemp(join(dirname(file), `.${basename(file)}-`))
  const partial = join(folder, basename(file))
  try {
    const hash = createHash('sha256')
    const written = { tasks: 0 }
    const sink = createWriteStream(partial, { flush: true })
    const blocks = textBlocks(header, tasks, hash, written)
    if (file.endsWith('.gz')) await pipeline(blocks, createGzip(), sink)
    else await pipeline(blocks, sink)
    await rename(partial, file)
    return { tasks: written.tasks, sha256: hash.digest('hex') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
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
      throw new RangeError(`task ${task.id} arrives at ${task.at}, before ${latestAt}: tasks are written in the order of arrival`)
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
