/** One stream of server-sent events, from its first event until the connection ends. */
import { ConnectionError, UnexpectedAnswer } from './errors.ts'
import { streamEvents, type StreamEvent } from './event-stream.ts'
import type { Call, Transport } from './transport.ts'

/** Heartbeats arrive every 15 s; after this time without any data the connection counts as broken. */
const SILENCE_MS = 45_000

export interface StreamCall extends Pick<Call, 'path' | 'query'> {
  /** Last-Event-ID: the position to resume from. */
  readonly from: number
  /** Subject of the stream, for error messages: `events`. */
  readonly subject: string
  readonly signal: AbortSignal | undefined
  /** Receives positions of the stream that arrive without an event. */
  readonly onId?: (id: string) => void
}

/**
 * Ends with the connection. Throws ConnectionError for a broken or silent connection, ApiError for a refusal,
 * and an abort as it is.
 */
export async function* openStream(
  transport: Transport,
  { path, query = {}, from, subject, signal: outer, onId }: StreamCall,
): AsyncGenerator<StreamEvent, void, undefined> {
  const silence = new AbortController()
  const signal = AbortSignal.any(outer === undefined ? [silence.signal] : [silence.signal, outer])
  const response = await transport.open({
    method: 'GET',
    path,
    query,
    headers: { accept: 'text/event-stream', 'last-event-id': String(from) },
    ...(outer === undefined ? {} : { signal: outer }),
  })
  if (
    !(response.headers.get('content-type') ?? '').startsWith('text/event-stream') ||
    response.body === null
  ) {
    await response.body?.cancel()
    throw new UnexpectedAnswer(`${transport.url} does not stream ${subject}`)
  }
  try {
    yield* streamEvents(withSilenceLimit(response.body, signal, silence), onId)
  } catch (error) {
    if (silence.signal.aborted)
      throw new ConnectionError(`${transport.url} sent no data for ${SILENCE_MS / 1000} s`, false, error)
    throw transport.broken(error, outer === undefined ? {} : { signal: outer })
  }
}

/** Yields the same bytes; aborts `silence` when none arrive for too long. */
async function* withSilenceLimit(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  silence: AbortController,
): AsyncGenerator<Uint8Array> {
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
