/**
 * Uploaded files of tasks in the data folder: `files/OWNER/SHA-256`, where OWNER is a hash of the owner's
 * name. Files are kept while an open task needs them, and for some time after their last use.
 */
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BlobOwner, BlobPiece, Blobs, BlobUsage, Stored } from '../../controller/ports/blobs.ts'
import { chunksOf, readManifest } from '../../protocol/manifest.ts'
import { newPartialName } from '../simulations/library/partial-uploads.ts'
import { UploadQuota, type UploadLimits } from '../simulations/library/upload-quota.ts'

export interface BlobStoreOptions {
  /** Created at the first upload. */
  readonly folder: string
  readonly limits: UploadLimits
  readonly maxWorkdirBytes: number
  readonly now: () => number
  /** Replaced in tests. */
  readonly ask?: ConstructorParameters<typeof UploadQuota>[0]['ask']
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
/** Files of one owner, and of all: each takes an inode and some memory. */
const MAX_BLOBS_PER_OWNER = 100_000
const MAX_BLOBS = 500_000
const MAX_READ_MANIFESTS = 64
/** In the data folder. */
export const FILES_FOLDER = 'files'
export const OWNER_FILE = 'owner.json'
const HASH = /^[0-9a-f]{64}$/

interface Blob {
  readonly bytes: number
  usedAt: number
}

interface OwnedBlobs {
  readonly owner: BlobOwner
  readonly folder: string
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
  readonly #quota: UploadQuota
  readonly #owners = new Map<string, OwnedBlobs>()
  readonly #writing = new Map<string, Promise<void>>()
  readonly #removing = new Map<string, Promise<void>>()
  readonly #manifests = new Map<string, ParsedManifest>()
  #totalBytes = 0
  #count = 0
  #needed: () => Iterable<NeededFolder> = () => []

  private constructor(options: BlobStoreOptions) {
    this.#options = options
    this.maxWorkdirBytes = options.maxWorkdirBytes
    this.#quota = new UploadQuota({
      folder: options.folder,
      limits: options.limits,
      kept: () => Promise.resolve([]),
      what: {
        plural: 'uploaded files of tasks',
        remedy: 'Files that no open task needs are removed after an hour.',
      },
      ...(options.ask === undefined ? {} : { ask: options.ask }),
    })
  }

  /** Loads what earlier processes stored. */
  static async open(options: BlobStoreOptions): Promise<BlobStore> {
    const store = new BlobStore(options)
    for (const name of await namesIn(options.folder)) await store.#load(name)
    return store
  }

  /** @param needed returns what open tasks need now */
  keepFor(needed: () => Iterable<NeededFolder>): void {
    this.#needed = needed
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  missing(owner: BlobOwner, hashes: readonly string[]): readonly string[] {
    const blobs = this.#owners.get(folderOfOwner(owner))?.blobs
    const now = this.#options.now()
    return hashes.filter((hash) => {
      const blob = blobs?.get(hash)
      if (blob !== undefined) blob.usedAt = now
      return blob === undefined
    })
  }

  async put(owner: BlobOwner, sha256: string, content: Uint8Array): Promise<Stored> {
    if (createHash('sha256').update(content).digest('hex') !== sha256)
      return refused('invalid', 'the body has another SHA-256 than the path')
    if (this.missing(owner, [sha256]).length === 0) return { ok: true, isNew: false }
    const owned = await this.#ownedBy(owner)
    const full = (await this.#whyFull(owned, content.byteLength)) ?? (await this.#quota.whyDiskIsShort())
    if (full !== null) return refused('uploads_full', full)
    const path = join(owned.folder, sha256)
    await this.#removing.get(path)
    const others = this.#writing.get(path)
    if (others !== undefined) {
      await others
      return { ok: true, isNew: false }
    }
    // Counted first: uploads at the same time cannot exceed the limits together.
    this.#add(owned, content.byteLength, 1)
    const writing = this.#write(owned, path, content)
    this.#writing.set(path, writing)
    try {
      await writing
    } catch (error) {
      this.#add(owned, -content.byteLength, -1)
      throw error
    } finally {
      this.#writing.delete(path)
    }
    owned.blobs.set(sha256, { bytes: content.byteLength, usedAt: this.#options.now() })
    return { ok: true, isNew: true }
  }

  async whyUnusable(owner: BlobOwner, sha256: string): Promise<string | null> {
    const owned = this.#owners.get(folderOfOwner(owner))
    if (owned === undefined || this.missing(owner, [sha256]).length > 0)
      return 'names no manifest that you have uploaded (PUT /blobs/{hash})'
    const read = readManifest(await readFile(join(owned.folder, sha256), 'utf8'))
    if (!read.ok) return `names no valid manifest: ${read.why}`
    if (read.bytes > this.maxWorkdirBytes)
      return `names a folder of ${read.bytes} bytes; the limit is ${this.maxWorkdirBytes}`
    const chunks = chunksOf(read.manifest)
    const missing = this.missing(owner, [...chunks.keys()])
    if (missing.length > 0) return `names a folder of which ${missing.length} chunks are not uploaded`
    const wrong = [...chunks].find(([hash, bytes]) => owned.blobs.get(hash)?.bytes !== bytes)
    if (wrong !== undefined) return `names a folder whose chunk ${wrong[0]} has another size`
    await syncFolder(owned.folder)
    return null
  }

  async belongsTo(owner: BlobOwner, manifest: string, sha256: string): Promise<boolean> {
    const parsed = await this.#parsed(owner, manifest)
    return parsed !== null && (sha256 === manifest || parsed.chunks.has(sha256))
  }

  async read(owner: BlobOwner, sha256: string, offset: number, maxBytes: number): Promise<BlobPiece | null> {
    const owned = this.#owners.get(folderOfOwner(owner))
    const blob = owned?.blobs.get(sha256)
    if (owned === undefined || blob === undefined) return null
    blob.usedAt = this.#options.now()
    const file = await open(join(owned.folder, sha256))
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, offset)
      return { base64: buffer.toString('base64', 0, bytesRead), bytes: blob.bytes }
    } finally {
      await file.close()
    }
  }

  usage(owner: BlobOwner): BlobUsage {
    const { maxBytes, maxBytesPerOwner } = this.#options.limits
    const ownBytes = this.#owners.get(folderOfOwner(owner))?.bytes ?? 0
    return { ownBytes, maxBytesPerOwner, totalBytes: this.#totalBytes, maxBytes }
  }

  /** Removes what no open task needs and was not used for this long. */
  async collect(unusedMs = KEPT_MS): Promise<void> {
    for (const { owner, manifest } of [...this.#needed()]) {
      const parsed = await this.#parsed(owner, manifest)
      this.missing(owner, [manifest, ...(parsed?.chunks.keys() ?? [])])
    }
    const before = this.#options.now() - unusedMs
    for (const owned of this.#owners.values()) {
      for (const [hash, blob] of owned.blobs) {
        if (blob.usedAt > before) continue
        owned.blobs.delete(hash)
        this.#manifests.delete(join(owned.folder, hash))
        this.#add(owned, -blob.bytes, -1)
        await this.#remove(join(owned.folder, hash))
      }
    }
  }

  async #load(name: string): Promise<void> {
    const folder = join(this.#options.folder, name)
    const text = await readFile(join(folder, OWNER_FILE), 'utf8').catch(() => null)
    if (text === null) return
    const { owner } = JSON.parse(text) as { readonly owner: BlobOwner }
    const owned: OwnedBlobs = { owner, folder, blobs: new Map(), bytes: 0 }
    this.#owners.set(name, owned)
    const names = await readdir(folder)
    for (const partial of names.filter((each) => each.startsWith('.upload-'))) await rm(join(folder, partial))
    for (const hash of names.filter((each) => HASH.test(each))) {
      const { size: bytes, mtimeMs } = await stat(join(folder, hash))
      owned.blobs.set(hash, { bytes, usedAt: Math.min(mtimeMs, this.#options.now()) })
      this.#add(owned, bytes, 1)
    }
  }

  async #ownedBy(owner: BlobOwner): Promise<OwnedBlobs> {
    const key = folderOfOwner(owner)
    const known = this.#owners.get(key)
    if (known !== undefined) return known
    const folder = join(this.#options.folder, key)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(join(folder, OWNER_FILE), JSON.stringify({ owner }))
    await syncFolder(this.#options.folder)
    await syncFolder(dirname(this.#options.folder))
    const owned = this.#owners.get(key) ?? { owner, folder, blobs: new Map<string, Blob>(), bytes: 0 }
    this.#owners.set(key, owned)
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
      return 'Too many files are uploaded. Files that no open task needs are removed after an hour.'
    return this.#quota.whyNot({ ownBytes: owned.bytes, totalBytes: this.#totalBytes }, bytes)
  }

  /** Durable under its name once the folder is synchronised, which the submission of its task does. */
  async #write({ folder }: OwnedBlobs, path: string, content: Uint8Array): Promise<void> {
    const partial = join(folder, newPartialName())
    try {
      const file = await open(partial, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(partial, path)
    } finally {
      await rm(partial, { force: true })
    }
  }

  /** An upload of the same content waits, so that its file is not removed. */
  async #remove(path: string): Promise<void> {
    const removing = rm(path, { force: true })
    this.#removing.set(path, removing)
    await removing.finally(() => this.#removing.delete(path))
  }

  #add(owned: OwnedBlobs, bytes: number, count: number): void {
    owned.bytes += bytes
    this.#totalBytes += bytes
    this.#count += count
  }

  /** The latest ones are kept in memory: each read of a chunk asks. */
  async #parsed(owner: BlobOwner, sha256: string): Promise<ParsedManifest | null> {
    const owned = this.#owners.get(folderOfOwner(owner))
    const path = join(owned?.folder ?? '', sha256)
    const known = this.#manifests.get(path)
    if (known !== undefined || owned?.blobs.has(sha256) !== true) return known ?? null
    const read = readManifest(await readFile(path, 'utf8'))
    if (!read.ok) return null
    const parsed = { chunks: chunksOf(read.manifest), bytes: read.bytes }
    const [oldest] = this.#manifests.keys()
    if (this.#manifests.size >= MAX_READ_MANIFESTS && oldest !== undefined) this.#manifests.delete(oldest)
    this.#manifests.set(path, parsed)
    return parsed
  }
}

/** Name of the folder of its files. */
export function folderOfOwner(owner: BlobOwner): string {
  return createHash('sha256').update(JSON.stringify(owner)).digest('hex').slice(0, 32)
}

function refused(code: 'invalid' | 'uploads_full', detail: string): Stored {
  return { ok: false, refusal: { code, detail } }
}

/** Without a folder nothing was uploaded. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
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
