/** Reads server-sent events from a response body (WHATWG HTML 9.2.6). EventSource cannot send a token. */

export interface StreamEvent {
  readonly event: string
  readonly data: string
}

/** Ends with the body. `onId` receives each id, also without an event. `onBytes` is called for each chunk. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: StreamEvent) => void,
  { onId, onBytes }: { readonly onId: (id: string) => void; readonly onBytes: () => void },
): Promise<void> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let rest = ''
  let fields = { event: 'message', data: [] as string[] }
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onBytes()
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (fields.data.length > 0) onEvent({ event: fields.event, data: fields.data.join('\n') })
        fields = { event: 'message', data: [] }
      } else if (line.startsWith('data:')) fields.data.push(line.slice(5).replace(/^ /, ''))
      else if (line.startsWith('event:')) fields.event = line.slice(6).trim()
      else if (line.startsWith('id:')) onId(line.slice(3).trim())
    }
  }
}
