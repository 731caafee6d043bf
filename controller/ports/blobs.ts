/** Uploaded files of tasks: chunks and manifests, each named by its SHA-256. They belong to one owner. */

/** Null: the controller requires no authentication. */
export type BlobOwner = string | null

/** Why an upload is refused. */
export type BlobRefusal =
  | { readonly code: 'invalid'; readonly detail: string }
  | { readonly code: 'uploads_full'; readonly detail: string }

export type Stored =
  { readonly ok: true; readonly isNew: boolean } | { readonly ok: false; readonly refusal: BlobRefusal }

export interface BlobUsage {
  readonly ownBytes: number
  readonly maxBytesPerOwner: number
  readonly totalBytes: number
  readonly maxBytes: number
}

export interface BlobPiece {
  readonly base64: string
  /** Size of the whole. */
  readonly bytes: number
}

export interface Blobs {
  /** Maximum size of the files of one folder together. */
  readonly maxWorkdirBytes: number
  /** Returns which of these the owner has not uploaded; the others are kept for some time. */
  missing(owner: BlobOwner, hashes: readonly string[]): Promise<readonly string[]>
  /** Resolves once it is durable. */
  put(owner: BlobOwner, sha256: string, content: Uint8Array): Promise<Stored>
  /** Returns why a task of the owner cannot have this folder, or null; then it is kept for some time. */
  whyUnusable(owner: BlobOwner, sha256: string): Promise<string | null>
  /** Returns true if it is the manifest itself, or a chunk that the manifest names. */
  belongsTo(owner: BlobOwner, manifest: string, sha256: string): Promise<boolean>
  /** Null: not found. */
  read(owner: BlobOwner, sha256: string, offset: number, maxBytes: number): Promise<BlobPiece | null>
  usage(owner: BlobOwner): Promise<BlobUsage>
}
