import { constants } from 'node:fs'
import { lchown, open, readdir, rmdir, unlink, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from './guard-fault.ts'

/** Deeper folders are left: each level needs an open file. */
const MAX_DEPTH = 256

/**
 * Removes a folder whose content a task chose. Every step goes through an open folder and follows no link, so
 * that a process that replaces a folder by a link at the same time cannot redirect the removal. What cannot
 * be removed is left.
 */
export async function removeTree(folder: string): Promise<void> {
  const parent = await openFolder(dirname(folder), 0)
  if (parent === null) return
  try {
    await removeIn(parent, folder.slice(folder.lastIndexOf('/') + 1), 0)
  } finally {
    await parent.close()
  }
}

async function removeIn(parent: FileHandle, name: string, depth: number): Promise<void> {
  const path = `/proc/self/fd/${parent.fd}/${name}`
  const error = await unlink(path).then(
    () => '',
    (fault: unknown) => codeOf(fault),
  )
  if (!['EISDIR', 'EPERM'].includes(error) || depth >= MAX_DEPTH) return
  // A root without CAP_DAC_OVERRIDE (a container) may only open its own files.
  if (process.getuid?.() === 0) await lchown(path, 0, 0).catch(() => undefined)
  const folder = await openFolder(path, constants.O_NOFOLLOW)
  if (folder === null) return
  try {
    for (const each of await readdir(`/proc/self/fd/${folder.fd}`)) await removeIn(folder, each, depth + 1)
  } finally {
    await folder.close()
  }
  await rmdir(path).catch(() => undefined)
}

function openFolder(path: string, flags: number): Promise<FileHandle | null> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | flags).catch(() => null)
}
