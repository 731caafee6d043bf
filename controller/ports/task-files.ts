import type { FileList, FilePiece } from '../../protocol/file-messages.ts'

/** `refused`: the server's reason, or too many reads are in progress. Null: it did not answer. */
export type FilesAnswer<T> = T | { readonly refused: string } | null

/** An attempt, and the server that has its work folder. */
export interface WorkFolder {
  readonly nodeId: string
  readonly taskId: string
  readonly attempt: number
}

/** Reads work folders of attempts from their servers. */
export interface TaskFiles {
  list(
    folder: WorkFolder,
    what: { readonly path: string; readonly after: string; readonly maxItems: number },
  ): Promise<FilesAnswer<FileList>>
  read(
    folder: WorkFolder,
    what: { readonly path: string; readonly offset: number; readonly maxBytes: number },
  ): Promise<FilesAnswer<FilePiece>>
}
