import type { WorkFile } from '../../protocol/file-messages.ts'

/** Files in the work folders of attempts, by path. */
export interface FileListPart {
  readonly items: readonly WorkFile[]
  readonly isComplete: boolean
}

/** Bytes of a file, and what identifies its content. */
export interface FilePart {
  readonly base64: string
  readonly bytes: number
  readonly modifiedMs: number
  readonly inode: string
}

/** Why there is no answer; a code of the protocol. */
export interface FilesRefused {
  readonly refused: string
}

/** Work folders of attempts that live on this host or have ended there. No answer comes within the call. */
export interface WorkFilesPort {
  list(
    taskId: string,
    attempt: number,
    what: { readonly path: string; readonly after: string; readonly maxItems: number },
    done: (answer: FileListPart | FilesRefused) => void,
  ): void
  read(
    taskId: string,
    attempt: number,
    what: { readonly path: string; readonly offset: number; readonly maxBytes: number },
    done: (answer: FilePart | FilesRefused) => void,
  ): void
}
