/** Parses server-sent events from a response body (WHATWG HTML 9.2.6, without `retry`). */

export interface StreamEvent {
  readonly event: string
  /** The last id seen, of this event or an earlier one; empty: none. */
  readonly id: string
  readonly data: string
}

/** Maximum characters of a line; events of the controller are far shorter. */
const MAX_LINE = 1024 * 1024

/**
 * Yields events until the body ends; skips comments and an incomplete last event.
 * @param onId receives every id, also without an event: the position of the stream
 */
export async function* streamEvents(
  body: AsyncIterable<Uint8Array>,
  onId: (id: string) => void = () => {},
): AsyncGenerator<StreamEvent, void, undefined> {
  let event = ''
  let id = ''
  let data: string[] = []
  for await (const line of linesOf(body)) {
    if (line === '') {
      if (data.length > 0) yield { event: event === '' ? 'message' : event, id, data: data.join('\n') }
      else if (id !== '') onId(id)
      event = ''
      data = []
      continue
    }
    const at = line.indexOf(':')
    if (at === 0) continue
    const field = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'data') data.push(value)
  }
}

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    // A trailing carriage return may be half of a line end.
    const isCut = rest.endsWith('\r')
    const lines = (isCut ? rest.slice(0, -1) : rest).split(/\r\n|\r|\n/)
    rest = `${lines.pop() ?? ''}${isCut ? '\r' : ''}`
    if (rest.length > MAX_LINE) throw new Error(`a line of the stream is longer than ${MAX_LINE} characters`)
    yield* lines
  }
}
