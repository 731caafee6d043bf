/**
 * Uploaded files of tasks: owners, limits and removal. Files are kept while an open task needs them, and for
 * some time after their last use.
 */
import { createHash } from 'node:crypto'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import type { BlobOwner, BlobPiece, Blobs, BlobUsage, Stored } from '../../controller/ports/blobs.ts'
import { CHUNK_BYTES } from '../../protocol/limits.ts'
import { chunksOf, readManifest } from '../../protocol/manifest.ts'
import { whyOverLimits, whyShortOfSpace, type UploadLimits } from '../simulations/library/upload-quota.ts'

export interface BlobStoreOptions {
  readonly files: BlobFiles
  readonly limits: UploadLimits
  readonly maxWorkdirBytes: number
  readonly now: () => number
}

/** The uploaded folder that an open task needs. */
export interface NeededFolder {
  readonly owner: BlobOwner
  readonly manifest: string
}

/** Kept after its last use; within this time a client may submit the task of its upload, or a similar one. */
const KEPT_MS = 3_600_000
/** The same where the space is needed. */
const KEPT_WHEN_FULL_MS = 600_000
/** Files of one owner, and of all: each takes an inode or a row, and some memory. */
const MAX_BLOBS_PER_OWNER = 100_000
const MAX_BLOBS = 500_000
const MAX_READ_MANIFESTS = 64
const WHAT = {
  plural: 'uploaded files of tasks',
  remedy: 'Files that no open task needs are removed after an hour.',
}

interface Blob {
  readonly bytes: number
  usedAt: number
}

interface OwnedBlobs {
  readonly owner: BlobOwner
  readonly blobs: Map<string, Blob>
  bytes: number
}

interface ParsedManifest {
  readonly chunks: ReadonlyMap<string, number>
  readonly bytes: number
}

export class BlobStore implements Blobs {
  readonly maxWorkdirBytes: number
  readonly #options: BlobStoreOptions
  readonly #owners = new Map<BlobOwner, OwnedBlobs>()
  readonly #writing = new Map<string, Promise<void>>()
  readonly #removing = new Map<string, Promise<void>>()
  readonly #manifests = new Map<string, ParsedManifest>()
  #loading: Promise<void> | null = null
  #totalBytes = 0
  #count = 0
  #needed: () => Iterable<NeededFolder> = () => []

  /** Loads what earlier processes stored, at the first use or before it (`loaded`). */
  constructor(options: BlobStoreOptions) {
    this.#options = options
    this.maxWorkdirBytes = options.maxWorkdirBytes
  }

  /** Rejects with the fault of the files; the next use tries again. */
  loaded(): Promise<void> {
    return (this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = null
      throw error
    }))
  }

  /** @param needed returns what open tasks need now */
  keepFor(needed: () => Iterable<NeededFolder>): void {
    this.#needed = needed
  }

  async missing(owner: BlobOwner, hashes: readonly string[]): Promise<readonly string[]> {
    await this.loaded()
    return this.#missing(owner, hashes)
  }

  #missing(owner: BlobOwner, hashes: readonly string[]): readonly string[] {
    const blobs = this.#owners.get(owner)?.blobs
    const now = this.#options.now()
    return hashes.filter((hash) => {
      const blob = blobs?.get(hash)
      if (blob !== undefined) blob.usedAt = now
      return blob === undefined
    })
  }

  async put(owner: BlobOwner, sha256: string, content: Uint8Array): Promise<Stored> {
    if (createHash('sha256').update(content).digest('hex') !== sha256)
      return refused('invalid', 'the SHA-256 of the body differs from the one in the path')
    if ((await this.missing(owner, [sha256])).length === 0) return { ok: true, isNew: false }
    const owned = this.#ownedBy(owner)
    const short = (await this.#whyShort()) ?? (await this.#whyFull(owned, content.byteLength))
    if (short !== null) return refused('uploads_full', short)
    const id = idOf(owner, sha256)
    await this.#removing.get(id)
    const others = this.#writing.get(id)
    if (others !== undefined) {
      await others
      return { ok: true, isNew: false }
    }
    // Counted first, and checked without a pause before: uploads at the same time cannot exceed the limits
    // together.
    const full = this.#whyNot(owned, content.byteLength)
    if (full !== null) return refused('uploads_full', full)
    this.#add(owned, content.byteLength, 1)
    const writing = this.#options.files.write(owner, sha256, content)
    this.#writing.set(id, writing)
    try {
      await writing
    } catch (error) {
      this.#add(owned, -content.byteLength, -1)
      throw error
    } finally {
      this.#writing.delete(id)
    }
    owned.blobs.set(sha256, { bytes: content.byteLength, usedAt: this.#options.now() })
    return { ok: true, isNew: true }
  }

  async whyUnusable(owner: BlobOwner, sha256: string): Promise<string | null> {
    if ((await this.missing(owner, [sha256])).length > 0)
      return 'is not a manifest that you have uploaded (PUT /blobs/{hash})'
    const read = readManifest(await this.#text(owner, sha256))
    if (!read.ok) return `is not a valid manifest: ${read.why}`
    if (read.bytes > this.maxWorkdirBytes)
      return `refers to a folder of ${read.bytes} bytes; the limit is ${this.maxWorkdirBytes}`
    const chunks = chunksOf(read.manifest)
    const missing = this.#missing(owner, [...chunks.keys()])
    if (missing.length > 0) return `refers to a folder with ${missing.length} chunks that are not uploaded`
    const blobs = this.#owners.get(owner)?.blobs
    const wrong = [...chunks].find(([hash, bytes]) => blobs?.get(hash)?.bytes !== bytes)
    if (wrong !== undefined) return `refers to a folder whose chunk ${wrong[0]} has a different size`
    await this.#options.files.settle(owner)
    return null
  }

  async belongsTo(owner: BlobOwner, manifest: string, sha256: string): Promise<boolean> {
    const parsed = await this.#parsed(owner, manifest)
    return parsed !== null && (sha256 === manifest || parsed.chunks.has(sha256))
  }

  async read(owner: BlobOwner, sha256: string, offset: number, maxBytes: number): Promise<BlobPiece | null> {
    await this.loaded()
    const blob = this.#owners.get(owner)?.blobs.get(sha256)
    if (blob === undefined) return null
    blob.usedAt = this.#options.now()
    const piece = await this.#options.files.read(owner, sha256, offset, maxBytes)
    return piece === null ? null : { base64: piece.toString('base64'), bytes: blob.bytes }
  }

  async usage(owner: BlobOwner): Promise<BlobUsage> {
    await this.loaded()
    const { maxBytes, maxBytesPerOwner } = this.#options.limits
    const ownBytes = this.#owners.get(owner)?.bytes ?? 0
    return { ownBytes, maxBytesPerOwner, totalBytes: this.#totalBytes, maxBytes }
  }

  /** Removes what no open task needs and was not used for this long. */
  async collect(unusedMs = KEPT_MS): Promise<void> {
    await this.loaded()
    for (const { owner, manifest } of [...this.#needed()]) {
      const parsed = await this.#parsed(owner, manifest)
      this.#missing(owner, [manifest, ...(parsed?.chunks.keys() ?? [])])
    }
    const before = this.#options.now() - unusedMs
    for (const owned of this.#owners.values()) {
      const unused = [...owned.blobs].filter(([, { usedAt }]) => usedAt <= before)
      for (const [hash, { bytes }] of unused) {
        owned.blobs.delete(hash)
        this.#manifests.delete(idOf(owned.owner, hash))
        this.#add(owned, -bytes, -1)
      }
      await this.#remove(
        owned.owner,
        unused.map(([hash]) => hash),
      )
    }
  }

  async #load(): Promise<void> {
    const now = this.#options.now()
    for (const { owner, sha256, bytes, at } of await this.#options.files.list()) {
      const owned = this.#ownedBy(owner)
      owned.blobs.set(sha256, { bytes, usedAt: Math.min(at, now) })
      this.#add(owned, bytes, 1)
    }
  }

  #ownedBy(owner: BlobOwner): OwnedBlobs {
    const owned = this.#owners.get(owner) ?? { owner, blobs: new Map<string, Blob>(), bytes: 0 }
    this.#owners.set(owner, owned)
    return owned
  }

  /** Makes room first, where that helps. */
  async #whyFull(owned: OwnedBlobs, bytes: number): Promise<string | null> {
    const why = this.#whyNot(owned, bytes)
    if (why === null) return null
    await this.collect(KEPT_WHEN_FULL_MS)
    return this.#whyNot(owned, bytes)
  }

  #whyNot(owned: OwnedBlobs, bytes: number): string | null {
    if (owned.blobs.size >= MAX_BLOBS_PER_OWNER || this.#count >= MAX_BLOBS)
      return (
        'The limit of uploaded files is reached. Files that no open task needs are removed after ' +
        'an hour.'
      )
    const usage = { ownBytes: owned.bytes, totalBytes: this.#totalBytes }
    return whyOverLimits(this.#options.limits, usage, bytes, WHAT)
  }

  async #whyShort(): Promise<string | null> {
    const space = await this.#options.files.space()
    return space === null ? null : whyShortOfSpace(this.#options.limits, space)
  }

  /** An upload of the same content waits, so that its file is not removed. */
  async #remove(owner: BlobOwner, hashes: readonly string[]): Promise<void> {
    if (hashes.length === 0) return
    const removing = this.#options.files.remove(owner, hashes)
    const ids = hashes.map((hash) => idOf(owner, hash))
    for (const id of ids) this.#removing.set(id, removing)
    await removing.finally(() => ids.forEach((id) => this.#removing.delete(id)))
  }

  #add(owned: OwnedBlobs, bytes: number, count: number): void {
    owned.bytes += bytes
    this.#totalBytes += bytes
    this.#count += count
  }

  /** The latest ones are kept in memory: each read of a chunk asks. */
  async #parsed(owner: BlobOwner, sha256: string): Promise<ParsedManifest | null> {
    await this.loaded()
    const id = idOf(owner, sha256)
    const known = this.#manifests.get(id)
    if (known !== undefined || this.#owners.get(owner)?.blobs.has(sha256) !== true) return known ?? null
    const read = readManifest(await this.#text(owner, sha256))
    if (!read.ok) return null
    const parsed = { chunks: chunksOf(read.manifest), bytes: read.bytes }
    const [oldest] = this.#manifests.keys()
    if (this.#manifests.size >= MAX_READ_MANIFESTS && oldest !== undefined) this.#manifests.delete(oldest)
    this.#manifests.set(id, parsed)
    return parsed
  }

  /** Returns the text of a manifest; empty if the manifest is gone. */
  async #text(owner: BlobOwner, sha256: string): Promise<string> {
    return (await this.#options.files.read(owner, sha256, 0, CHUNK_BYTES))?.toString() ?? ''
  }
}

function idOf(owner: BlobOwner, sha256: string): string {
  return `${sha256} ${owner ?? ''}${owner === null ? '' : '.'}`
}

function refused(code: 'invalid' | 'uploads_full', detail: string): Stored {
  return { ok: false, refusal: { code, detail } }
}
