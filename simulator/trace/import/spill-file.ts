/**
 * Where sorting puts what does not fit into memory: one file that has no name any more, so that nothing is
 * left behind however the process ends.
 */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TraceError } from '../trace-error.ts'

export interface SpillFile {
  /** @returns where the block begins */
  append(block: string): Promise<{ readonly offset: number; readonly bytes: number }>
  /** As many bytes as there are, at most `bytes`. */
  read(offset: number, bytes: number): Promise<Buffer>
  close(): Promise<void>
}

/**
 * @param folder has room for about what is sorted; default: the system's folder for temporary files. Throws
 *   TraceError when it may not be written.
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

/** Out of room, or not allowed: somebody has to name another folder. */
function unwritable(folder: string): (error: unknown) => never {
  return (error) => {
    throw new TraceError({ file: folder }, `cannot hold what is sorted there: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
