import { open, readdir, stat } from 'node:fs/promises'
import type { OutputChunk } from './guards.ts'
import { readExit } from './guard-folder.ts'
import { codeOf } from './guard-fault.ts'

const ROTATION_RETRIES = 3

/** A file of output; `start`: offset of its first byte in the stream. */
export interface Segment {
  readonly path: string
  readonly start: number
}

/**
 * Reads output that a guard keeps, or kept, in its folder; null when there is no such folder. Older bytes may
 * be dropped while this reads.
 */
export async function readGuardOutput(
  folder: string,
  stream: 'stdout' | 'stderr',
  offset: number,
  maxBytes: number,
): Promise<OutputChunk | null> {
  for (let i = 0; ; i++) {
    try {
      return await readOnce(folder, stream, offset, maxBytes)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      if (i === ROTATION_RETRIES || !(await isThere(folder))) return null
    }
  }
}

async function readOnce(
  folder: string,
  stream: string,
  offset: number,
  maxBytes: number,
): Promise<OutputChunk> {
  // before the data, so that the end covers everything read now
  const isOver = (await readExit(folder)) !== null
  const segments = await segmentsIn(folder, stream)
  const last = segments.at(-1)
  const end = last === undefined ? 0 : last.start + (await stat(last.path)).size
  const from = Math.min(Math.max(offset, segments[0]?.start ?? 0), end)
  const parts: Buffer[] = []
  let at = from
  for (const segment of segments.filter((_, i) => (segments[i + 1]?.start ?? Infinity) > from)) {
    const part = await readPart(segment.path, at - segment.start, from + maxBytes - at)
    parts.push(part)
    at += part.length
  }
  return { offset: from, data: Buffer.concat(parts), isEnded: isOver && at >= end }
}

/** Oldest first. */
export async function segmentsIn(folder: string, stream: string): Promise<Segment[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(`${stream}.`))
  return names
    .map((name) => ({ path: `${folder}/${name}`, start: Number(name.slice(stream.length + 1)) }))
    .sort((a, b) => a.start - b.start)
}

async function readPart(path: string, position: number, size: number): Promise<Buffer> {
  if (size <= 0) return Buffer.alloc(0)
  const file = await open(path, 'r')
  try {
    const data = Buffer.alloc(Math.min(size, Math.max(0, (await file.stat()).size - position)))
    const { bytesRead } = await file.read(data, 0, data.length, position)
    return data.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function isThere(folder: string): Promise<boolean> {
  return stat(folder).then(
    () => true,
    () => false,
  )
}
