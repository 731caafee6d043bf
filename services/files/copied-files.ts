/**
 * Copies uploaded files of tasks from one folder of a blob store to another, for backup and restore. A file
 * never changes and is named by the hash of its content: one that the target has is not copied again.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { chunksOf, readManifest } from '../../protocol/manifest.ts'
import { folderOfOwner, OWNER_FILE, type NeededFolder } from './blob-store.ts'

export interface CopiedFiles<T> {
  /** Those of which all files are in the target. */
  readonly complete: readonly T[]
  readonly incomplete: readonly T[]
  readonly copiedBytes: number
}

/**
 * Durable once it returns. @param to created if something is copied
 * @param isDryRun nothing is copied; the answer is the same @throws file-system errors
 */
export function copyFiles<T extends NeededFolder>(
  from: string,
  to: string,
  needed: readonly T[],
  isDryRun = false,
): CopiedFiles<T> {
  const [complete, incomplete]: [T[], T[]] = [[], []]
  const changed = new Set<string>()
  let copiedBytes = 0
  const checked = new Set<string>()
  const has = (owner: NeededFolder['owner'], hash: string): boolean => {
    const [source, target] = [from, to].map((root) => join(root, folderOfOwner(owner), hash)) as [
      string,
      string,
    ]
    if (checked.has(target) || isWhole(target, hash)) return true
    if (!isWhole(source, hash)) return false
    if (!isDryRun) {
      makeFolderOf(owner, to)
      copyDurably(source, target)
      changed.add(dirname(target))
    }
    copiedBytes += statSync(source).size
    checked.add(target)
    return true
  }
  for (const folder of needed) {
    const { owner, manifest } = folder
    const chunks = has(owner, manifest) ? chunksIn([from, to], owner, manifest) : null
    const isComplete = chunks !== null && chunks.map((hash) => has(owner, hash)).every(Boolean)
    ;(isComplete ? complete : incomplete).push(folder)
  }
  for (const folder of changed) syncFolder(folder)
  if (changed.size > 0) for (const folder of [to, dirname(to)]) syncFolder(folder)
  return { complete, incomplete, copiedBytes }
}

function chunksIn(
  roots: readonly string[],
  owner: NeededFolder['owner'],
  manifest: string,
): readonly string[] | null {
  for (const root of roots) {
    const text = contentOf(join(root, folderOfOwner(owner), manifest))
    const read = text === null ? null : readManifest(text.toString())
    if (read?.ok === true) return [...chunksOf(read.manifest).keys()]
  }
  return null
}

function isWhole(path: string, sha256: string): boolean {
  const content = contentOf(path)
  return content !== null && createHash('sha256').update(content).digest('hex') === sha256
}

/** Null: there is no such file. */
function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function makeFolderOf(owner: NeededFolder['owner'], root: string): void {
  const folder = join(root, folderOfOwner(owner))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, OWNER_FILE), JSON.stringify({ owner }), { mode: 0o600 })
}

function copyDurably(source: string, target: string): void {
  const partial = `${target}.copying`
  try {
    copyFileSync(source, partial, constants.COPYFILE_FICLONE)
    chmodSync(partial, 0o600)
    syncFolder(partial)
    renameSync(partial, target)
  } finally {
    rmSync(partial, { force: true })
  }
}

function syncFolder(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
