import { afterEach, expect, test, vi } from 'vitest'
import { FeedConnection } from '../../ui/api/feed-connection.ts'
import type { FromFeed } from '../../ui/api/feed-messages.ts'

afterEach(() => vi.unstubAllGlobals())

/** Responds with these chunks and ends the stream. */
function streamOf(...chunks: readonly string[]): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
  return new Response(body)
}

test('The feed reads every line ending, and continues after the last id', async () => {
  const ids: (string | null)[] = []
  const received: FromFeed[] = []
  const connection = new FeedConnection('/api/v1', null, (message) => received.push(message))
  vi.stubGlobal('fetch', (_url: string, { headers }: { headers: Record<string, string> }) => {
    ids.push(headers['last-event-id'] ?? null)
    if (ids.length > 1) {
      connection.close()
      return Promise.resolve(streamOf())
    }
    return Promise.resolve(
      streamOf(
        'event: event\rid: 4\rda',
        'ta: {"seq":4}\r\r',
        'event: event\r\nid: 5\r\ndata: {"seq":5}\r\n\r',
        '\nid: 6\n\n',
      ),
    )
  })
  await connection.run()
  expect(ids).toEqual([null, '6'])
  expect(received.flatMap((message) => (message.kind === 'events' ? message.events : []))).toEqual([
    { seq: 4 },
    { seq: 5 },
  ])
})
