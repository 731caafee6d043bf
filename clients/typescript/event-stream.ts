/** Parses server-sent events from a response body. */
import { createParser } from 'eventsource-parser'

export interface StreamEvent {
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
