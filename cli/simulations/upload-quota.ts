/**
 * How much room uploads may take: in all, for each owner, and never the last of the disk, which is the
 * store's as well. Looked at before, while and after a file is received.
 */
import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'

export interface UploadLimits {
  readonly maxBytes: number
  readonly maxBytesPerOwner: number
  /** Free bytes and the share of the disk that stay free, whichever is more. */
  readonly minFreeBytes: number
  readonly minFreePercent: number
}

const GIB = 1024 * 1024 * 1024
export const DEFAULT_UPLOAD_LIMITS: UploadLimits = {
  maxBytes: 10 * GIB,
  maxBytesPerOwner: 2 * GIB,
  minFreeBytes: GIB,
  minFreePercent: 5,
}

/** null: the controller has no tokens. */
export type Owner = string | null

export interface UploadedFile {
  readonly owner: Owner
  readonly bytes: number
}

type StatFs = (
  folder: string,
) => Promise<{ readonly bavail: number; readonly blocks: number; readonly bsize: number }>

export interface UploadQuotaOptions {
  /** Of the disk that is looked at. */
  readonly folder: string
  readonly limits: UploadLimits
  /** What is kept now. */
  readonly kept: () => Promise<readonly UploadedFile[]>
  /** A test has its own. Default: what the file system says. */
  readonly ask?: StatFs
}

export interface Usage {
  readonly ownBytes: number
  readonly totalBytes: number
}

export class UploadQuota {
  readonly limits: UploadLimits
  /** The latest that is known, for metrics; null: not looked at yet. */
  totalBytes: number | null = null
  readonly #options: UploadQuotaOptions
  readonly #ask: StatFs

  constructor(options: UploadQuotaOptions) {
    this.#options = options
    this.limits = options.limits
    this.#ask = options.ask ?? statfs
  }

  async usageOf(owner: Owner): Promise<Usage> {
    let [ownBytes, totalBytes] = [0, 0]
    for (const file of await this.#options.kept()) {
      totalBytes += file.bytes
      if (file.owner === owner) ownBytes += file.bytes
    }
    this.totalBytes = totalBytes
    return { ownBytes, totalBytes }
  }

  /**
   * @param usage without what is being received @returns why `bytes` more of this owner may not be kept;
   *   null: they may
   */
  whyNot({ ownBytes, totalBytes }: Usage, bytes: number): string | null {
    const { maxBytes, maxBytesPerOwner } = this.limits
    if (ownBytes + bytes > maxBytesPerOwner) {
      return `Your uploads may take ${inMib(maxBytesPerOwner)} together. Delete one first (GET /usage says what they take).`
    }
    if (totalBytes + bytes > maxBytes)
      return `All uploads together may take ${inMib(maxBytes)}. One has to be deleted first.`
    return null
  }

  /** Why nothing more may be written now. Says nothing of how much is free. */
  async whyDiskIsShort(): Promise<string | null> {
    const { bavail, blocks, bsize } = await this.#ask(this.#options.folder)
    const { minFreeBytes, minFreePercent } = this.limits
    const floor = Math.max(minFreeBytes, (blocks * bsize * minFreePercent) / 100)
    return bavail * bsize < floor ? 'The disk is short of space: no uploads are taken now.' : null
  }
}

/** Bytes of all files below a folder that is being written. */
export async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

function inMib(bytes: number): string {
  return `${Math.floor(bytes / 1_048_576).toLocaleString('en-US')} MiB`
}
