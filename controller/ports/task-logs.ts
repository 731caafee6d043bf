import type { AttemptRecord, LogChunk, LogStream } from '../../protocol/messages.ts'

/** What a task has written, read from the server that runs or ran it. */
export interface TaskLogs {
  /**
   * Output from byte `offset` on, at most `maxBytes` of it. `refused`: the server knows no such output, or
   * too many reads are under way; null: it did not answer.
   */
  read(
    nodeId: string,
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
  ): Promise<LogChunk | { readonly refused: string } | null>
  /**
   * What the server recorded of an attempt that lives there; null: it does not answer, or does not know the
   * attempt.
   */
  readRecord?(nodeId: string, taskId: string, attempt: number): Promise<AttemptRecord | null>
}
