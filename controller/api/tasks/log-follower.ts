/** A task's output as it is written, one stream of it, as server-sent events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogChunk, LogStream } from '../../../protocol/messages.ts'
import type { Views } from '../../query/views.ts'
import type { TaskLogs } from '../../ports/task-logs.ts'
import { logSourceOf, type LogSource } from './log-source.ts'
import type { LogBody, LogEndBody } from './log-schema.ts'
import { HEARTBEAT_MS, SSE_HEARTBEAT, sseEvent } from '../http/server-sent-events.ts'

export interface LogFollow {
  readonly taskId: string
  readonly stream: LogStream
  /** Bytes since the attempt began. */
  readonly offset: number
  readonly maxBytes: number
}

/** Asked again so soon after something came, and ever later while nothing does. */
const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 1_000
/** The output of a task that has ended is asked for this long before it counts as gone with its server. */
const GIVE_UP_MS = 30_000
/** The refusal that passes. */
const BUSY = 'too_many_reads'

/** Ends when all of the attempt's output has been sent, or the task went on to another attempt. */
export async function* followLog(
  views: Views,
  logs: TaskLogs,
  follow: LogFollow,
): AsyncGenerator<string, void, undefined> {
  let { offset } = follow
  let source: LogSource | null = null
  let waitMs = FIRST_WAIT_MS
  let silentMs = 0
  let unavailableMs = 0
  for (;;) {
    const now: LogSource | null = await logSourceOf(views, follow.taskId).catch(() => source)
    if (source !== null && now !== null && now.attempt !== source.attempt)
      return yield endOf(source, 'superseded')
    source = now ?? source
    const answer =
      source === null
        ? null
        : await logs.read(
            source.nodeId,
            follow.taskId,
            source.attempt,
            follow.stream,
            offset,
            follow.maxBytes,
          )
    if (source !== null && answer !== null && !('refused' in answer)) {
      const piece = presentLog(answer, source.nodeId)
      if (piece.next_offset > offset || piece.data !== '') {
        yield sseEvent('output', piece, piece.next_offset)
        offset = piece.next_offset
        waitMs = FIRST_WAIT_MS
        silentMs = 0
        unavailableMs = 0
        continue
      }
      if (piece.is_ended) return yield endOf(source, 'ended')
      unavailableMs = 0
    } else if (source !== null && views.openTask(follow.taskId) === undefined) {
      const isUnknown = answer !== null && 'refused' in answer && answer.refused !== BUSY
      unavailableMs += waitMs
      if (isUnknown || unavailableMs >= GIVE_UP_MS) return yield endOf(source, 'unavailable')
    }
    await sleep(waitMs)
    silentMs += waitMs
    waitMs = Math.min(MAX_WAIT_MS, waitMs * 2)
    if (silentMs >= HEARTBEAT_MS) {
      yield SSE_HEARTBEAT
      silentMs = 0
    }
  }
}

export function presentLog(chunk: LogChunk, nodeId: string): LogBody {
  return {
    task_id: chunk.task_id,
    attempt: chunk.attempt,
    node_id: nodeId,
    stream: chunk.stream,
    offset: chunk.offset,
    next_offset: chunk.offset + Buffer.byteLength(chunk.data, 'base64'),
    data: chunk.data,
    is_ended: chunk.is_ended,
  }
}

function endOf({ attempt }: LogSource, why: LogEndBody['why']): string {
  return sseEvent('end', { attempt, why } satisfies LogEndBody)
}
