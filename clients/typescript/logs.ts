/** Follows the output of a task: one stream, resumed when the connection breaks. */
import type { LogBody, LogEndBody } from '../../controller/api/tasks/log-schema.ts'
import { ConnectionError, isPassing } from './errors.ts'
import { openStream } from './event-stream.ts'
import { backoffMs, pathSegment, pause, type Transport } from './transport.ts'

export interface FollowLogOptions {
  readonly stream?: 'stdout' | 'stderr'
  /** First byte. */
  readonly offset?: number
  readonly signal?: AbortSignal
  /** Called once for each broken connection, before it is reopened. */
  readonly onInterrupted?: (error: Error) => void
}

export interface LogPiece {
  readonly attempt: number
  /**
   * Offset of the first byte; larger than the end of the previous piece when the server no longer keeps the
   * bytes between them.
   */
  readonly offset: number
  readonly bytes: Uint8Array
}

const MAX_PAUSE_MS = 5_000

/**
 * Ends when the attempt's output has been read, and returns why. Throws ApiError for what the controller
 * refuses permanently. An abort of the signal is thrown as it is.
 */
export async function* followLog(
  transport: Transport,
  id: string,
  { stream = 'stdout', offset: from = 0, signal, onInterrupted }: FollowLogOptions,
): AsyncGenerator<LogPiece, LogEndBody, undefined> {
  let offset = from
  for (let failures = 0; ;) {
    try {
      for await (const event of openLog(transport, id, stream, offset, signal)) {
        failures = 0
        if (event.kind === 'end') return event.end
        yield event.piece
        offset = event.piece.offset + event.piece.bytes.length
      }
      throw new ConnectionError(`the connection to ${transport.url} ended`, false)
    } catch (error) {
      if (!isPassing(error) || signal?.aborted === true) throw error
      failures += 1
      if (failures === 1) onInterrupted?.(error)
      await pause(backoffMs(failures, MAX_PAUSE_MS), signal ?? new AbortController().signal)
    }
  }
}

type FromStream =
  { readonly kind: 'piece'; readonly piece: LogPiece } | { readonly kind: 'end'; readonly end: LogEndBody }

async function* openLog(
  transport: Transport,
  id: string,
  stream: string,
  offset: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<FromStream, void, undefined> {
  const path = `/tasks/${pathSegment(id)}/logs`
  const query = { stream, follow: true }
  for await (const event of openStream(transport, {
    path,
    query,
    from: offset,
    subject: 'the output of tasks',
    signal,
  })) {
    if (event.event === 'output') yield { kind: 'piece', piece: pieceOf(JSON.parse(event.data) as LogBody) }
    if (event.event === 'end') yield { kind: 'end', end: JSON.parse(event.data) as LogEndBody }
  }
}

function pieceOf({ attempt, offset, data }: LogBody): LogPiece {
  return { attempt, offset, bytes: Buffer.from(data, 'base64') }
}
