/** Uploaded folders of tasks, the work folders of their attempts, and channels into them. */
import type { BlobBody, MissingBody } from '../../controller/api/files/blob-schema.ts'
import type { FilePieceBody, WorkFileBody, WorkFilesBody } from '../../controller/api/tasks/file-schema.ts'
import type { UsageBody } from '../../controller/api/simulations/usage-schema.ts'
import { channelsOf } from './channels.ts'
import type { CallOptions } from './simulations.ts'
import { pathSegment, type Transport } from './transport.ts'

export type { FilePieceBody as FilePiece, WorkFileBody as WorkFile }

export function blobsOf(transport: Transport) {
  return {
    /** Returns the hashes (at most 1,000) that the caller has not uploaded. */
    missing: async (hashes: readonly string[], { signal }: CallOptions = {}) =>
      (
        await transport.json<MissingBody>({
          method: 'POST',
          path: '/blobs/missing',
          body: { sha256: hashes },
          isRepeatable: true,
          signal,
        })
      ).sha256,
    /** Stores a chunk or a manifest, at most 4 MiB. */
    put: (sha256: string, content: Uint8Array, { signal }: CallOptions = {}) =>
      transport.json<BlobBody>({
        method: 'PUT',
        path: `/blobs/${pathSegment(sha256)}`,
        body: content,
        headers: { 'content-type': 'application/octet-stream' },
        isRepeatable: true,
        signal,
      }),
  }
}

export interface FilesQuery {
  /** A folder or a file; default: the whole work folder. */
  readonly path?: string
  readonly after?: string
  readonly limit?: number
}

export function taskFilesOf(transport: Transport) {
  const at = (id: string): string => `/tasks/${pathSegment(id)}/files`
  return {
    ...channelsOf(transport),
    /** A page of the files in the work folder of its latest attempt. */
    files: (id: string, { signal, ...query }: FilesQuery & CallOptions = {}) =>
      transport.json<WorkFilesBody>({ method: 'GET', path: at(id), query: { ...query }, signal }),
    /** A piece of one of these files. */
    readFile: (
      id: string,
      { signal, ...query }: { readonly path: string; readonly offset?: number } & CallOptions,
    ) => transport.json<FilePieceBody>({ method: 'GET', path: `${at(id)}/content`, query, signal }),
  }
}

/** Storage that the uploads of the caller take, and its limits. */
export function usageOf(transport: Transport) {
  return ({ signal }: CallOptions = {}) =>
    transport.json<UsageBody>({ method: 'GET', path: '/usage', signal })
}
