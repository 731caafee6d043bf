import type { AttemptRecord, LogChunk, LogStream } from '../../protocol/messages.ts'

/** Requests to the server that runs or ran a task: its output, its record, its process. */
export interface TaskLogs {
  /**
   * Output from byte `offset` on, at most `maxBytes`. `refused`: the server knows no such output, or too many
   * reads are in progress; null: it did not answer.
   */
  read(
    nodeId: string,
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
  ): Promise<LogChunk | { readonly refused: string } | null>
  /** The server's record of an attempt; null: it does not answer, or does not know the attempt. */
  readRecord?(nodeId: string, taskId: string, attempt: number): Promise<AttemptRecord | null>
  /**
   * Lets a process of the host register for a lease with the token that has this SHA-256. Resolves with the
   * path of the socket there, or why not; null: the server did not answer.
   */
  expectProcess?(
    nodeId: string,
    taskId: string,
    attempt: number,
    tokenSha256: string,
  ): Promise<{ readonly socket: string } | { readonly refused: string } | null>
}
