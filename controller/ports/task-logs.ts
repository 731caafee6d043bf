import type { LogChunk, LogStream } from '../../protocol/messages.ts'

/** What a task has written, read from the server that runs or ran it. */
export interface TaskLogs {
  /**
   * Output from byte `offset` on, at most `maxBytes` of it. `refused`: the server knows no such output, or too many reads are under way;
   * null: it did not answer.
   */
  read(
    nodeId: string,
    taskId: string,
    attempt: number,
    stream: LogStream,
    offset: number,
    maxBytes: number,
  ): Promise<LogChunk | { readonly refused: string } | null>
}
