/** What a task writes, as it writes it: one stream, taken up again where the connection broke. */
import type { LogBody, LogEndBody } from '../../controller/api/schema/log.ts'
import { ApiError, ConnectionError, UnexpectedAnswer } from './errors.ts'
import { streamEvents } from './event-stream.ts'
import { backoffMs, part, pause, type Transport } from './transport.ts'

export interface FollowLogOptions {
  readonly stream?: 'stdout' | 'stderr'
  /** From this byte on. */
  readonly offset?: number
  readonly signal?: AbortSignal
  /** Hears of a connection that broke, once for each; it is made again. */
  readonly onInterrupted?: (error: Error) => void
}

export interface LogPiece {
  readonly attempt: number
  /** Where the bytes begin; more than where the last piece ended when the server no longer keeps what was between. */
  readonly offset: number
  readonly bytes: Uint8Array
}

/** Heartbeats come every 15 s; nothing at all for this long is a connection that died unnoticed. */
const SILENCE_MS = 45_000
const MAX_PAUSE_MS = 5_000

/**
 * Ends when the attempt's output has been read, and says why. What the controller refuses for good is thrown as ApiError. With a
 * signal it ends as an abort.
 */
export async function* followLog(
  transport: Transport,
  id: string,
  { stream = 'stdout', offset: from = 0, signal, onInterrupted }: FollowLogOptions,
): AsyncGenerator<LogPiece, LogEndBody, undefined> {
  let offset = from
  for (let failures = 0; ;) {
    try {
      for await (const event of openStream(transport, id, stream, offset, signal)) {
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

type FromStream = { readonly kind: 'piece'; readonly piece: LogPiece } | { readonly kind: 'end'; readonly end: LogEndBody }

async function* openStream(
  transport: Transport,
  id: string,
  stream: string,
  offset: number,
  outer: AbortSignal | undefined,
): AsyncGenerator<FromStream, void, undefined> {
  const silence = new AbortController()
  const signal = AbortSignal.any(outer === undefined ? [silence.signal] : [silence.signal, outer])
  const response = await transport.open({
    method: 'GET',
    path: `/tasks/${part(id)}/logs`,
    query: { stream, follow: true },
    headers: { accept: 'text/event-stream', 'last-event-id': String(offset) },
    ...(outer === undefined ? {} : { signal: outer }),
  })
  if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream') || response.body === null) {
    await response.body?.cancel()
    throw new UnexpectedAnswer(`${transport.url} does not stream what tasks write`)
  }
  try {
    for await (const event of streamEvents(heard(response.body, signal, silence))) {
      if (event.event === 'output') yield { kind: 'piece', piece: pieceOf(JSON.parse(event.data) as LogBody) }
      if (event.event === 'end') yield { kind: 'end', end: JSON.parse(event.data) as LogEndBody }
    }
  } catch (error) {
    if (silence.signal.aborted) throw new ConnectionError(`${transport.url} fell silent`, false, error)
    throw transport.broken(error, outer === undefined ? {} : { signal: outer })
  }
}

/** The same bytes; aborts `silence` when none come for too long. */
async function* heard(body: ReadableStream<Uint8Array>, signal: AbortSignal, silence: AbortController): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  const stop = (): void => void reader.cancel(signal.reason).catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  try {
    for (;;) {
      const timer = setTimeout(() => silence.abort(), SILENCE_MS)
      const { done, value } = await reader.read().finally(() => clearTimeout(timer))
      signal.throwIfAborted()
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', stop)
    await reader.cancel().catch(() => {})
  }
}

function pieceOf({ attempt, offset, data }: LogBody): LogPiece {
  return { attempt, offset, bytes: Buffer.from(data, 'base64') }
}

/** It goes away by itself: a broken connection, a controller that restarts, a server that is full for the moment. */
function isPassing(error: unknown): error is Error {
  return error instanceof ConnectionError || (error instanceof ApiError && (error.status === 429 || error.status === 503))
}
