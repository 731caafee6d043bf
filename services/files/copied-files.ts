/**
 * Copies uploaded files of tasks, for backup and restore. A file never changes and is named by the hash of
 * its content: one that the target has is not copied again.
 */
import { createHash } from 'node:crypto'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import { CHUNK_BYTES } from '../../protocol/limits.ts'
import { chunksOf, readManifest } from '../../protocol/manifest.ts'
import type { NeededFolder } from './blob-store.ts'

export interface CopiedFiles<T> {
  /** Entries with all files in the target. */
  readonly complete: readonly T[]
  readonly incomplete: readonly T[]
  readonly copiedBytes: number
}

/**
 * Durable once it resolves. @param isDryRun nothing is copied; the answer is the same
 * @throws faults of the files
 */
export async function copyFiles<T extends NeededFolder>(
  from: BlobFiles,
  to: BlobFiles,
  needed: readonly T[],
  isDryRun = false,
): Promise<CopiedFiles<T>> {
  const [complete, incomplete]: [T[], T[]] = [[], []]
  const changed = new Set<NeededFolder['owner']>()
  /** Sizes by owner and hash. */
  const copied = new Map<string, number>()
  const has = async (owner: NeededFolder['owner'], hash: string): Promise<boolean> => {
    const id = JSON.stringify([owner, hash])
    if (copied.has(id) || (await wholeIn(to, owner, hash)) !== null) return true
    const content = await wholeIn(from, owner, hash)
    if (content === null) return false
    if (!isDryRun) {
      await to.write(owner, hash, content)
      changed.add(owner)
    }
    copied.set(id, content.byteLength)
    return true
  }
  for (const folder of needed) {
    const { owner, manifest } = folder
    const hashes = (await has(owner, manifest)) ? await chunksIn([from, to], owner, manifest) : null
    let isComplete = hashes !== null
    for (const hash of hashes ?? []) isComplete = (await has(owner, hash)) && isComplete
    ;(isComplete ? complete : incomplete).push(folder)
  }
  for (const owner of changed) await to.settle(owner)
  return { complete, incomplete, copiedBytes: [...copied.values()].reduce((sum, bytes) => sum + bytes, 0) }
}

async function chunksIn(
  places: readonly BlobFiles[],
  owner: NeededFolder['owner'],
  manifest: string,
): Promise<readonly string[] | null> {
  for (const place of places) {
    const content = await wholeIn(place, owner, manifest)
    const read = content === null ? null : readManifest(content.toString())
    if (read?.ok === true) return [...chunksOf(read.manifest).keys()]
  }
  return null
}

/** Null: it is not there, or damaged. */
async function wholeIn(files: BlobFiles, owner: NeededFolder['owner'], hash: string): Promise<Buffer | null> {
  const content = await files.read(owner, hash, 0, CHUNK_BYTES)
  return content !== null && createHash('sha256').update(content).digest('hex') === hash ? content : null
}
