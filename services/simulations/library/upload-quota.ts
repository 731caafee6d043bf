/**
 * Disk space for uploads: limits in total and per owner, and a minimum that stays free for the store. Checked
 * before, during and after an upload.
 */
import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Space } from '../../../controller/ports/blob-files.ts'

export interface UploadLimits {
  readonly maxBytes: number
  readonly maxBytesPerOwner: number
  /** Free bytes and share of the disk that must stay free, whichever is more. */
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
  /** A folder on the disk to check. */
  readonly folder: string
  readonly limits: UploadLimits
  /** Returns the stored uploads. */
  readonly kept: () => Promise<readonly UploadedFile[]>
  /** Replaced in tests. Default: asks the file system. */
  readonly ask?: StatFs
}

export interface Usage {
  readonly ownBytes: number
  readonly totalBytes: number
}

export class UploadQuota {
  readonly limits: UploadLimits
  /** The latest known total, for metrics; null: not measured yet. */
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
   * @param usage without the current upload
   * @returns why `bytes` more of this owner are refused; null: they are accepted
   */
  whyNot(usage: Usage, bytes: number): string | null {
    return whyOverLimits(this.limits, usage, bytes, UPLOADS)
  }

  /** Returns why nothing more may be written now, without the amount of free space. */
  async whyDiskIsShort(): Promise<string | null> {
    const { bavail, blocks, bsize } = await this.#ask(this.#options.folder)
    return whyShortOfSpace(this.limits, { freeBytes: bavail * bsize, totalBytes: blocks * bsize })
  }
}

/** Names the kind of upload, and the actions of its owner, in a refusal. */
export interface UploadKind {
  readonly plural: string
  readonly remedy: string
}

const UPLOADS: UploadKind = {
  plural: 'uploads',
  remedy: 'Delete one first (GET /usage shows their size).',
}

/** Same as UploadQuota.whyNot. */
export function whyOverLimits(
  { maxBytes, maxBytesPerOwner }: UploadLimits,
  { ownBytes, totalBytes }: Usage,
  bytes: number,
  { plural, remedy }: UploadKind,
): string | null {
  if (ownBytes + bytes > maxBytesPerOwner)
    return `The limit of ${inMib(maxBytesPerOwner)} for your ${plural} is reached. ${remedy}`
  if (totalBytes + bytes > maxBytes)
    return `The limit of ${inMib(maxBytes)} for all ${plural} is reached. Delete some first.`
  return null
}

/** Same as UploadQuota.whyDiskIsShort. */
export function whyShortOfSpace({ minFreeBytes, minFreePercent }: UploadLimits, space: Space): string | null {
  const floor = Math.max(minFreeBytes, (space.totalBytes * minFreePercent) / 100)
  return space.freeBytes < floor ? 'The disk is low on space: uploads are refused for now.' : null
}

/** Returns the size of all files below a folder that is being written. */
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
