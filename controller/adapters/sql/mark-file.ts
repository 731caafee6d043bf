/**
 * The mark's file, next to the store: two slots written alternately, each write durable when the call
 * returns.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { StoreFault } from '../../ports/store.ts'
import { oneLine } from './one-line.ts'
import { publishFile } from './files.ts'
import { decodeSlot, encodeSlot, SLOT_BYTES, type FileMark, type MarkSlot } from './store-mark.ts'
import { errorText } from '../../../protocol/error-text.ts'

export type FoundMark =
  { readonly is: 'absent' } | { readonly is: 'damaged' } | { readonly is: 'there'; readonly slot: MarkSlot }

export interface MarkFile {
  /** @throws StoreFault if it cannot be made durable */
  put(mark: FileMark): void
  close(): void
}

export function markPath(storePath: string): string {
  return `${storePath}.mark`
}

/** @throws a file-system error if the file exists and cannot be read */
export function readMark(storePath: string): FoundMark {
  let bytes: Buffer
  try {
    bytes = readFileSync(markPath(storePath))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { is: 'absent' }
    throw error
  }
  const slots = [0, 1].flatMap(
    (slot) => decodeSlot(bytes.subarray(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES)) ?? [],
  )
  const [first, second] = slots
  if (first === undefined) return { is: 'damaged' }
  return { is: 'there', slot: second !== undefined && second.generation > first.generation ? second : first }
}

/**
 * Replaces the whole file; its former content is void.
 * @param isDurable each write is on disk when it returns (default true)
 * @throws StoreFault
 */
export function openMarkFile(
  storePath: string,
  mark: FileMark,
  generation: number,
  now: () => number,
  isDurable = true,
): MarkFile {
  const path = markPath(storePath)
  let next = generation
  try {
    replaceFile(storePath, encodeSlot({ generation: next, at: now(), mark }))
    // A write to a file opened this way is on disk when the call returns.
    const handle = openSync(path, constants.O_RDWR | (isDurable ? constants.O_DSYNC : 0))
    return {
      put: (newer) => {
        next += 1
        try {
          writeSlot(
            handle,
            encodeSlot({ generation: next, at: now(), mark: newer }),
            ((next - generation) % 2) * SLOT_BYTES,
          )
        } catch (error) {
          throw markFault(path, error)
        }
      },
      close: () => closeSync(handle),
    }
  } catch (error) {
    throw markFault(path, error)
  }
}

function replaceFile(storePath: string, slot: Buffer): void {
  const ready = `${markPath(storePath)}.new`
  try {
    const bytes = Buffer.alloc(2 * SLOT_BYTES, '\n')
    slot.copy(bytes)
    writeFileSync(ready, bytes, { mode: 0o600 })
    chmodSync(ready, 0o600)
    giveToOwner(ready, storePath)
    publishFile(ready, markPath(storePath))
  } finally {
    rmSync(ready, { force: true })
  }
}

/** If root runs the command on another user's store, the mark belongs to that user. */
function giveToOwner(file: string, storePath: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(existsSync(storePath) ? storePath : dirname(storePath))
  chownSync(file, uid, gid)
}

function writeSlot(handle: number, slot: Buffer, position: number): void {
  const written = writeSync(handle, slot, 0, slot.length, position)
  if (written !== slot.length) throw new Error(`${written} of ${slot.length} bytes were written`)
}

function markFault(path: string, cause: unknown): StoreFault {
  const because = errorText(cause)
  return new StoreFault(
    oneLine(
      `${path} cannot be written (${because}): check the disk and the rights of the folder, then start again`,
    ),
    {
      cause,
    },
  )
}
