/** One stream of server-sent events, from its first event to the end of its connection. */
import { ConnectionError, UnexpectedAnswer } from './errors.ts'
import { streamEvents, type StreamEvent } from './event-stream.ts'
import type { Call, Transport } from './transport.ts'

/** Heartbeats come every 15 s; nothing at all for this long is a connection that died unnoticed. */
const SILENCE_MS = 45_000

export interface StreamCall extends Pick<Call, 'path' | 'query'> {
  /** Last-Event-ID: where to go on. */
  readonly from: number
  /** What it tells, for the error where it does not: `events`. */
  readonly subject: string
  readonly signal: AbortSignal | undefined
  /** Hears how far the stream has come where it says so without an event. */
  readonly onId?: (id: string) => void
}

/**
 * Ends with the connection. A broken or silent one is thrown as ConnectionError, a refusal as ApiError, an
 * abort as it is.
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
    if (silence.signal.aborted) throw new ConnectionError(`${transport.url} fell silent`, false, error)
    throw transport.broken(error, outer === undefined ? {} : { signal: outer })
  }
}

/** The same bytes; aborts `silence` when none come for too long. */
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
