/**
 * Where uploaded files of tasks are kept: a folder of the controller, or the database that several share. It
 * knows no limits. One contract suite (test/contract/blob-files.test.ts) runs against both.
 */
import type { BlobOwner } from './blobs.ts'

export interface KeptFile {
  readonly owner: BlobOwner
  readonly sha256: string
  readonly bytes: number
  /** When it was written, by the clock of that host. */
  readonly at: number
}

export interface BlobFiles {
  /** In messages. */
  readonly name: string
  list(): Promise<readonly KeptFile[]>
  /** At most `maxBytes` from `offset` on. Null: it is not there. */
  read(owner: BlobOwner, sha256: string, offset: number, maxBytes: number): Promise<Buffer | null>
  /** Writes the whole file or nothing; durable once its owner is settled. */
  write(owner: BlobOwner, sha256: string, content: Uint8Array): Promise<void>
  remove(owner: BlobOwner, sha256s: readonly string[]): Promise<void>
  /** Makes the files of the owner durable. */
  settle(owner: BlobOwner): Promise<void>
  /** Free space of the disk; null: it is not known. */
  space(): Promise<Space | null>
}

export interface Space {
  readonly freeBytes: number
  readonly totalBytes: number
}
