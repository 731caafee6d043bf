/**
 * Stores what does not fit in memory during sorting, in one unlinked file, so that nothing is left behind
 * however the process ends.
 */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TraceError } from '../trace-error.ts'

export interface SpillFile {
  /** @returns position of the block */
  append(block: string): Promise<{ readonly offset: number; readonly bytes: number }>
  /** Returns the available bytes, at most `bytes`. */
  read(offset: number, bytes: number): Promise<Buffer>
  close(): Promise<void>
}

/**
 * @param folder has room for about the size of the sorted data; default: the system's folder for temporary
 *   files. Throws TraceError if it is not writable
 */
export async function openSpillFile(folder: string = tmpdir()): Promise<SpillFile> {
  const handle = await openUnnamed(folder)
  let end = 0
  return {
    async append(block) {
      const bytes = Buffer.from(block)
      const offset = end
      for (let done = 0; done < bytes.length;) {
        done += (
          await handle.write(bytes, done, bytes.length - done, offset + done).catch(unwritable(folder))
        ).bytesWritten
      }
      end += bytes.length
      return { offset, bytes: bytes.length }
    },
    async read(offset, bytes) {
      const buffer = Buffer.allocUnsafe(bytes)
      const { bytesRead } = await handle.read(buffer, 0, bytes, offset)
      return buffer.subarray(0, bytesRead)
    },
    close: () => handle.close(),
  }
}

async function openUnnamed(folder: string): Promise<FileHandle> {
  const own = await mkdtemp(join(folder, '.headroom-sort-')).catch(unwritable(folder))
  try {
    return await open(join(own, 'runs'), 'wx+')
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

/** The disk is full or not writable: the user must name another folder. */
function unwritable(folder: string): (error: unknown) => never {
  return (error) => {
    throw new TraceError({ file: folder }, `cannot hold what is sorted there: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
