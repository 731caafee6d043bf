/** `--workdir`: uploads what the controller does not have of a folder. */
import { open } from 'node:fs/promises'
import type { HeadroomClient } from '../../clients/typescript/client.ts'
import { CommandFailure, UsageError } from '../../services/exit-codes.ts'
import { inParallel } from '../../services/in-parallel.ts'
import { StatusLine } from '../output/status-line.ts'
import { byteSize } from '../output/figures.ts'
import { manifestOf, readChunk, sha256, type ChunkPlace, type FolderManifest } from './folder-manifest.ts'

/** Files and chunks that are moved at the same time. */
export const FILES_AT_ONCE = 6
/** The limit of one request. */
const HASHES_PER_REQUEST = 1_000

/** Returns the value of `workdir` for a task with this folder. @throws UsageError, CommandFailure */
export async function uploadFolder(client: HeadroomClient, folder: string): Promise<string> {
  const line = new StatusLine()
  line.show(`reading ${folder}`)
  try {
    const manifest = await manifestOf(folder)
    await requireRoom(client, folder, manifest)
    const missing = await missingOf(client, [...manifest.chunks.keys()])
    let sent = 0
    await inParallel(missing, FILES_AT_ONCE, async (hash) => {
      await client.blobs.put(hash, await chunkAt(manifest.chunks.get(hash) as ChunkPlace, hash))
      line.show(`uploading ${folder}: ${(sent += 1)} of ${missing.length} chunks`)
    })
    await client.blobs.put(manifest.sha256, manifest.content)
    return manifest.sha256
  } finally {
    line.clear()
  }
}

/** Checks the quota before anything is sent. */
async function requireRoom(client: HeadroomClient, folder: string, { bytes }: FolderManifest): Promise<void> {
  const limit = (await client.usage()).files.folder_limit_bytes
  if (bytes <= limit) return
  throw new UsageError(
    `--workdir ${folder}: the folder contains ${byteSize(bytes)}; the limit is ${byteSize(limit)} ` +
      '(CONTROLLER_WORKDIR_MAX_MIB). Exclude files in .headroomignore, or share the folder and use --cwd',
  )
}

async function missingOf(client: HeadroomClient, hashes: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = []
  for (let at = 0; at < hashes.length; at += HASHES_PER_REQUEST)
    missing.push(...(await client.blobs.missing(hashes.slice(at, at + HASHES_PER_REQUEST))))
  return missing
}

async function chunkAt({ file, offset, bytes }: ChunkPlace, hash: string): Promise<Buffer> {
  const handle = await open(file)
  try {
    const chunk = await readChunk(handle, offset, bytes)
    if (sha256(chunk) === hash) return chunk
    throw new CommandFailure(`${file} changed during the upload; nothing was submitted`)
  } finally {
    await handle.close()
  }
}
