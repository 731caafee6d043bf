/**
 * The checkpoint of a recording file, in the same folder: a header like that file's, and one block with one
 * entry. It is complete or absent: written under another name, synced, then renamed.
 */
import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import type { Checkpoint } from '../../ports/recording-log.ts'
import { chainStart, checkpointName, encodeBlock, encodeHeader } from './format.ts'
import { headerOf, newReadNotes, readBlocks } from './read-file.ts'
import { RecordingError } from './recording-fault.ts'

const UNFINISHED = '.new'

/** Resolves when durable. @param file the recording file that continues from it */
export async function writeCheckpoint(file: string, checkpoint: Checkpoint): Promise<void> {
  const header = headerOf(file)
  const { bytes } = encodeBlock(
    chainStart({ ...header, gap: null }),
    deflateRawSync(`${JSON.stringify(checkpoint)}\n`),
    1,
  )
  const path = checkpointName(file)
  const handle = await open(path + UNFINISHED, 'w', 0o600)
  try {
    await handle.writeFile(Buffer.concat([encodeHeader({ ...header, gap: null }), bytes]))
    await handle.sync()
  } catch (error) {
    await rm(path + UNFINISHED, { force: true })
    throw error
  } finally {
    await handle.close()
  }
  await rename(path + UNFINISHED, path)
  await syncFolder(dirname(path))
}

/** Null: none. @throws RecordingError for the checkpoint of another file, and for damaged data */
export function readCheckpoint(file: string): Checkpoint | null {
  const path = checkpointName(file)
  if (path === file || !existsSync(path)) return null
  const [header, own] = [headerOf(file), headerOf(path)]
  if (own.run !== header.run || own.part !== header.part || own.previous !== header.previous) {
    throw new RecordingError(`${path}: the checkpoint belongs to another file`)
  }
  const notes = newReadNotes()
  const [checkpoint] = [
    ...readBlocks(path, chainStart(own), notes),
  ] as readonly unknown[] as readonly Checkpoint[]
  if (checkpoint === undefined) throw new RecordingError(`${path}: the file is empty`)
  return checkpoint
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
