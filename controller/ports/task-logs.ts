import type { AttemptRecord, LogChunk, LogStream } from '../../protocol/messages.ts'

/** Reads a task's output from the server that runs or ran it. */
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
}
