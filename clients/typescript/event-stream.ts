/** Parses server-sent events from a response body. */
import { createParser } from 'eventsource-parser'
import type { Call } from './call.ts'
import { ConnectionError, UnexpectedAnswer } from './errors.ts'
import type { Transport } from './transport.ts'

interface StreamEvent {
  readonly event: string
  /** The last id seen, of this event or an earlier one; empty: none. */
  readonly id: string
  readonly data: string
}

/** Maximum characters of an event; events of the controller are far shorter. */
const MAX_EVENT = 1024 * 1024

/**
 * Yields events until the body ends; skips comments and an incomplete last event.
 * @param onId receives every id, also without an event: the position of the stream
 */
export async function* streamEvents(
  body: AsyncIterable<Uint8Array>,
  onId: (id: string) => void = () => {},
): AsyncGenerator<StreamEvent, void, undefined> {
  let id = ''
  let parsed: (StreamEvent | string)[] = []
  const parser = createParser({
    maxBufferSize: MAX_EVENT,
    onId: (value) => void parsed.push((id = value)),
    onEvent: ({ event = 'message', data }) => void parsed.push({ event, id, data }),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parsed = []
    parser.feed(decoder.decode(chunk, { stream: true }))
    for (const part of parsed) {
      if (typeof part === 'string') onId(part)
      else yield part
    }
  }
}

/** Heartbeats arrive every 15 s; after this time without any data the connection counts as broken. */
const SILENCE_MS = 45_000

interface StreamCall extends Pick<Call, 'path' | 'query'> {
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
