/**
 * Uploaded files of tasks in a folder: `OWNER/SHA-256`, where OWNER is a hash of the owner's name. Created at
 * the first file.
 */
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BlobFiles, KeptFile } from '../../controller/ports/blob-files.ts'
import type { BlobOwner } from '../../controller/ports/blobs.ts'
import { newPartialName } from '../simulations/library/partial-uploads.ts'

/** In the data folder. */
export const FILES_FOLDER = 'files'
const OWNER_FILE = 'owner.json'
const HASH = /^[0-9a-f]{64}$/

export function createFolderFiles(root: string): BlobFiles {
  const made = new Set<string>()
  const folderOf = (owner: BlobOwner): string => join(root, folderOfOwner(owner))

  async function makeFolder(owner: BlobOwner): Promise<string> {
    const folder = folderOf(owner)
    if (made.has(folder)) return folder
    await mkdir(folder, { recursive: true, mode: 0o700 })
    // The folder appears as a whole or not at all. Otherwise the files would have no owner.
    const partial = join(folder, newPartialName())
    await writeFile(partial, JSON.stringify({ owner }), { mode: 0o600, flush: true })
    await rename(partial, join(folder, OWNER_FILE))
    await syncFolder(root)
    await syncFolder(dirname(root))
    made.add(folder)
    return folder
  }

  return {
    name: root,
    list: async () =>
      (await Promise.all((await namesIn(root)).map((name) => listed(join(root, name))))).flat(),
    read: async (owner, sha256, offset, maxBytes) => {
      const file = await unlessMissing(open(join(folderOf(owner), sha256)))
      if (file === null) return null
      try {
        const length = Math.max(0, Math.min(maxBytes, (await file.stat()).size - offset))
        const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
        return buffer.subarray(0, bytesRead)
      } finally {
        await file.close()
      }
    },
    write: async (owner, sha256, content) => {
      const folder = await makeFolder(owner)
      const partial = join(folder, newPartialName())
      try {
        const file = await open(partial, 'wx', 0o600)
        try {
          await file.writeFile(content)
          await file.datasync()
        } finally {
          await file.close()
        }
        await rename(partial, join(folder, sha256))
      } finally {
        await rm(partial, { force: true })
      }
    },
    remove: async (owner, sha256s) => {
      for (const sha256 of sha256s) await rm(join(folderOf(owner), sha256), { force: true })
    },
    settle: (owner) => syncFolder(folderOf(owner)),
    space: async () => {
      await mkdir(root, { recursive: true, mode: 0o700 })
      const { bavail, blocks, bsize } = await statfs(root)
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
    },
  }
}

/** Lists the files of one owner. Removes the remains of interrupted uploads. */
async function listed(folder: string): Promise<readonly KeptFile[]> {
  const text = await readFile(join(folder, OWNER_FILE), 'utf8').catch(() => null)
  if (text === null) return []
  const { owner } = JSON.parse(text) as { readonly owner: BlobOwner }
  const names = await readdir(folder)
  for (const partial of names.filter((each) => each.startsWith('.upload-'))) await rm(join(folder, partial))
  const files: KeptFile[] = []
  for (const sha256 of names.filter((each) => HASH.test(each))) {
    const { size: bytes, mtimeMs: at } = await stat(join(folder, sha256))
    files.push({ owner, sha256, bytes, at })
  }
  return files
}

/** Name of the folder of its files. */
export function folderOfOwner(owner: BlobOwner): string {
  return createHash('sha256').update(JSON.stringify(owner)).digest('hex').slice(0, 32)
}

/** Without a folder nothing was uploaded. */
async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? []
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function syncFolder(folder: string): Promise<void> {
  const file = await open(folder)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
