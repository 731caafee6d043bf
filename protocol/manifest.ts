/**
 * The manifest of an uploaded folder: its folders, files and links, and the chunks that the files consist of.
 * A chunk, and the manifest itself, is named by the SHA-256 of its bytes. A manifest is hostile input: it can
 * describe nothing outside the folder, no device and no special mode.
 */
import { CHUNK_BYTES, MAX_WORKDIR_BYTES, MAX_WORKDIR_ENTRIES } from './limits.ts'

export type ManifestEntry =
  | { readonly path: string; readonly kind: 'folder' }
  | {
      readonly path: string
      readonly kind: 'file'
      readonly bytes: number
      readonly executable: boolean
      /** SHA-256 of each CHUNK_BYTES of the file, in order; the last may be shorter. */
      readonly chunks: readonly string[]
    }
  /** `target` is relative, and stays inside the folder. */
  | { readonly path: string; readonly kind: 'link'; readonly target: string }

export interface Manifest {
  readonly version: 1
  /** A folder comes before its content. */
  readonly entries: readonly ManifestEntry[]
}

export type ReadManifest =
  | { readonly ok: true; readonly manifest: Manifest; readonly bytes: number }
  | { readonly ok: false; readonly why: string }

const MAX_PATH_BYTES = 2048
const MAX_NAME_BYTES = 255
const FIELDS: Readonly<Record<ManifestEntry['kind'], string>> = {
  folder: 'kind path',
  file: 'bytes chunks executable kind path',
  link: 'kind path target',
}

/** Checks a manifest and returns it with the bytes of all files together; never throws. */
export function readManifest(text: string): ReadManifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, why: 'it is not JSON' }
  }
  if (!isRecord(value) || value['version'] !== 1 || !Array.isArray(value['entries']))
    return { ok: false, why: 'it must have version 1 and a list of entries' }
  if (fieldsOf(value) !== 'entries version') return { ok: false, why: 'it has unknown fields' }
  const entries = value['entries'] as readonly unknown[]
  if (entries.length > MAX_WORKDIR_ENTRIES)
    return { ok: false, why: `it has ${entries.length} entries; the limit is ${MAX_WORKDIR_ENTRIES}` }
  const kinds = new Map<string, ManifestEntry['kind']>()
  let bytes = 0
  for (const [place, entry] of entries.entries()) {
    const why = whyNoEntry(entry, kinds)
    if (why !== null) return { ok: false, why: `entries[${place}]: ${why}` }
    const known = entry as ManifestEntry
    kinds.set(known.path, known.kind)
    if (known.kind === 'file') bytes += known.bytes
    if (bytes > MAX_WORKDIR_BYTES) return { ok: false, why: `its files exceed ${MAX_WORKDIR_BYTES} bytes` }
  }
  return { ok: true, manifest: value as unknown as Manifest, bytes }
}

/** Chunks of a manifest with their sizes, each once. */
export function chunksOf({ entries }: Manifest): ReadonlyMap<string, number> {
  const chunks = new Map<string, number>()
  for (const entry of entries) {
    if (entry.kind !== 'file') continue
    for (const [place, hash] of entry.chunks.entries()) chunks.set(hash, chunkBytes(entry.bytes, place))
  }
  return chunks
}

/** Size of chunk `place` of a file. */
export function chunkBytes(fileBytes: number, place: number): number {
  return Math.min(CHUNK_BYTES, fileBytes - place * CHUNK_BYTES)
}

function whyNoEntry(entry: unknown, kinds: ReadonlyMap<string, ManifestEntry['kind']>): string | null {
  if (!isRecord(entry)) return 'it is not an object'
  const { kind, path } = entry
  if (kind !== 'folder' && kind !== 'file' && kind !== 'link') return 'kind must be folder, file or link'
  if (fieldsOf(entry) !== FIELDS[kind]) return `a ${kind} must have the fields ${FIELDS[kind]}, and no others`
  const why = whyNoPath(path)
  if (why !== null) return `path: ${why}`
  const parent = (path as string).slice(0, Math.max(0, (path as string).lastIndexOf('/')))
  if (parent !== '' && kinds.get(parent) !== 'folder') return 'path: no folder before it contains it'
  if (kinds.has(path as string)) return 'path: another entry has it'
  if (kind === 'link') return whyNoTarget(path as string, entry['target'])
  return kind === 'file' ? whyNoFile(entry) : null
}

/** A relative path without `.`, `..` and empty names, in UTF-8. */
export function whyNoPath(path: unknown): string | null {
  if (typeof path !== 'string' || !path.isWellFormed() || path.includes('\0'))
    return 'it must be a string without NUL'
  if (byteLength(path) > MAX_PATH_BYTES) return `it must have at most ${MAX_PATH_BYTES} bytes`
  for (const name of path.split('/')) {
    if (name === '' || name === '.' || name === '..')
      return 'it must be relative, without empty names, . and ..'
    if (byteLength(name) > MAX_NAME_BYTES) return `a name must have at most ${MAX_NAME_BYTES} bytes`
  }
  return null
}

function whyNoFile({ bytes, executable, chunks }: Readonly<Record<string, unknown>>): string | null {
  if (!Number.isSafeInteger(bytes) || (bytes as number) < 0 || (bytes as number) > MAX_WORKDIR_BYTES)
    return 'bytes must be a size'
  if (typeof executable !== 'boolean') return 'executable must be true or false'
  if (!Array.isArray(chunks) || chunks.length !== Math.ceil((bytes as number) / CHUNK_BYTES))
    return `chunks must have one hash for each ${CHUNK_BYTES} bytes`
  return chunks.every((hash) => typeof hash === 'string' && HASH.test(hash))
    ? null
    : 'chunks must be SHA-256 hashes'
}

const HASH = /^[0-9a-f]{64}$/

/** A link may lead anywhere below the folder. It is made last, and nothing is ever written through it. */
function whyNoTarget(path: string, target: unknown): string | null {
  if (typeof target !== 'string' || !target.isWellFormed() || target.includes('\0') || target === '')
    return 'target must be a string without NUL'
  if (byteLength(target) > MAX_PATH_BYTES || target.startsWith('/')) return 'target must be relative'
  let depth = path.split('/').length - 1
  for (const name of target.split('/')) {
    if (name === '..') depth -= 1
    else if (name !== '' && name !== '.') depth += 1
    if (depth < 0) return 'target must stay inside the folder'
  }
  return null
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldsOf(value: object): string {
  return Object.keys(value)
    .sort((a, b) => (a < b ? -1 : 1))
    .join(' ')
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength
}
