/** Reads a folder of this machine as the manifest that `PUT /blobs` takes. */
import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { CHUNK_BYTES, MAX_WORKDIR_ENTRIES } from '../../protocol/limits.ts'
import { readManifest, type ManifestEntry } from '../../protocol/manifest.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { IGNORE_FILE, ignoreRules, type IsIgnored } from './ignore.ts'

/** A place in a file where a chunk can be read. */
export interface ChunkPlace {
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

export interface FolderManifest {
  readonly sha256: string
  readonly content: Uint8Array
  readonly files: number
  readonly bytes: number
  readonly chunks: ReadonlyMap<string, ChunkPlace>
}

/** @throws UsageError for a folder that cannot be read, or has something that cannot be uploaded */
export async function manifestOf(folder: string): Promise<FolderManifest> {
  const entries: ManifestEntry[] = []
  const chunks = new Map<string, ChunkPlace>()
  let [files, bytes] = [0, 0]
  for (const { path, about } of walked(folder, '', rulesIn(folder))) {
    if (entries.length >= MAX_WORKDIR_ENTRIES)
      throw new UsageError(
        `--workdir ${folder}: the folder has more than ${MAX_WORKDIR_ENTRIES} files and folders; exclude ` +
          `some in ${IGNORE_FILE}`,
      )
    if (about.isDirectory()) entries.push({ path, kind: 'folder' })
    else if (about.isSymbolicLink())
      entries.push({ path, kind: 'link', target: readlinkSync(join(folder, path)) })
    else {
      const file = await hashed(folder, path, chunks)
      entries.push({ path, kind: 'file', ...file, executable: (about.mode & 0o100) !== 0 })
      files += 1
      bytes += file.bytes
    }
  }
  const text = JSON.stringify({ version: 1, entries })
  const read = readManifest(text)
  if (!read.ok) throw new UsageError(`--workdir ${folder}: ${inWords(read.why, entries)}`)
  const content = Buffer.from(text)
  if (content.byteLength > CHUNK_BYTES)
    throw new UsageError(`--workdir ${folder}: the folder has too many files; exclude some in ${IGNORE_FILE}`)
  return { sha256: sha256(content), content, files, bytes, chunks }
}

function rulesIn(folder: string): IsIgnored {
  try {
    return ignoreRules(readFileSync(join(folder, IGNORE_FILE), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ignoreRules('')
    throw unreadable(folder, error)
  }
}

interface Found {
  readonly path: string
  readonly about: Stats
}

/** Names in order of their code units, a folder before its content. */
function* walked(folder: string, below: string, isIgnored: IsIgnored): Generator<Found> {
  for (const name of namesIn(folder, below)) {
    const path = below === '' ? name : `${below}/${name}`
    const about = lstatSync(join(folder, path))
    if (isIgnored(path, about.isDirectory())) continue
    if (!about.isDirectory() && !about.isFile() && !about.isSymbolicLink())
      throw new UsageError(
        `--workdir ${folder}: ${path} is not a file, folder or link; exclude it in ${IGNORE_FILE}`,
      )
    yield { path, about }
    if (about.isDirectory()) yield* walked(folder, path, isIgnored)
  }
}

function namesIn(folder: string, below: string): readonly string[] {
  try {
    return readdirSync(join(folder, below)).sort((a, b) => (a < b ? -1 : 1))
  } catch (error) {
    throw unreadable(folder, error)
  }
}

async function hashed(
  folder: string,
  path: string,
  chunks: Map<string, ChunkPlace>,
): Promise<{ readonly bytes: number; readonly chunks: readonly string[] }> {
  const file = join(folder, path)
  const hashes: string[] = []
  let bytes = 0
  const handle = await open(file).catch((error: unknown) => {
    throw unreadable(folder, error)
  })
  try {
    for (;;) {
      const chunk = await readChunk(handle, bytes, CHUNK_BYTES)
      if (chunk.byteLength === 0) break
      const hash = sha256(chunk)
      hashes.push(hash)
      if (!chunks.has(hash)) chunks.set(hash, { file, offset: bytes, bytes: chunk.byteLength })
      bytes += chunk.byteLength
      if (chunk.byteLength < CHUNK_BYTES) break
    }
  } finally {
    await handle.close()
  }
  return { bytes, chunks: hashes }
}

/** Fewer bytes only at the end of the file. */
export async function readChunk(handle: FileHandle, offset: number, size: number): Promise<Buffer> {
  const buffer = Buffer.alloc(size)
  let filled = 0
  while (filled < size) {
    const { bytesRead } = await handle.read(buffer, filled, size - filled, offset + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

export function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Names the file in place of its number. */
function inWords(why: string, entries: readonly ManifestEntry[]): string {
  const [, place, rest = ''] = /^entries\[(\d+)\]: (.*)$/.exec(why) ?? []
  const path = place === undefined ? null : entries[Number(place)]?.path
  return path === undefined || path === null ? why : `${path}: ${rest}; exclude it in ${IGNORE_FILE}`
}

function unreadable(folder: string, error: unknown): UsageError {
  return new UsageError(`--workdir ${folder}: ${(error as Error).message}`, { cause: error })
}
