import { HelperFault } from './helper-messages.ts'
import type { DeviceBytes } from './arena-records.ts'
import { extentsOf, piecesOf } from './arena-extents.ts'
import type { MappedMemory, StorageCalls } from './storage-calls.ts'

/** Copies begun before the driver is asked whether they have ended. More than it queues would block. */
const MAX_BEGUN = 256
const POLL_MS = 1

/** Number of pieces for all memories; each begins with a piece of its own. */
export function pieceCount(memories: readonly Pick<MappedMemory, 'bytes'>[], pieceBytes: number): number {
  return memories.reduce((sum, { bytes }) => sum + Math.ceil(bytes / pieceBytes), 0)
}

/** @param pieces in ascending order, at least `pieceCount` */
export function layOut(
  memories: readonly Pick<MappedMemory, 'uuid' | 'bytes'>[],
  pieceBytes: number,
  pieces: readonly number[],
): readonly DeviceBytes[] {
  let next = 0
  return memories.map(({ uuid, bytes }) => {
    const first = next
    next += Math.ceil(bytes / pieceBytes)
    return { uuid, bytes, extents: extentsOf(pieces.slice(first, next)) }
  })
}

export interface CopyJob {
  readonly direction: 'out' | 'in'
  readonly storage: StorageCalls
  readonly memories: readonly MappedMemory[]
  readonly devices: readonly DeviceBytes[]
  readonly pieceBytes: number
  /** Returns the address of a pinned piece in this process. */
  readonly address: (piece: number) => bigint
}

/** Copies all memories at the same time. Rejects with HelperFault after the last copy has ended. */
export async function copyAll(job: CopyJob): Promise<void> {
  const pairs = job.memories.map((memory) => {
    const device = job.devices.find(({ uuid }) => uuid === memory.uuid)
    if (device?.bytes === memory.bytes) return { memory, device }
    throw mismatch(`GPU ${memory.uuid} has ${memory.bytes} bytes, the swap arena ${device?.bytes ?? 'none'}`)
  })
  if (pairs.length !== job.devices.length)
    throw mismatch(`${pairs.length} GPUs, and the swap arena has ${job.devices.length}`)
  const results = await Promise.allSettled(pairs.map(({ memory, device }) => copyOne(job, memory, device)))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

async function copyOne(job: CopyJob, memory: MappedMemory, { extents }: DeviceBytes): Promise<void> {
  const { direction, storage, pieceBytes } = job
  const pieces = piecesOf(extents)
  for (let first = 0; first < pieces.length; first += MAX_BEGUN) {
    try {
      for (const [index, piece] of pieces.slice(first, first + MAX_BEGUN).entries()) {
        const offset = (first + index) * pieceBytes
        const bytes = Math.min(pieceBytes, memory.bytes - offset)
        storage.copy(direction, memory, offset, job.address(piece), bytes)
      }
    } finally {
      while (!storage.hasCopied(memory)) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
}

function mismatch(what: string): HelperFault {
  return new HelperFault({ kind: 'arena', message: `swap arena: the driver reports ${what}`, code: null })
}
