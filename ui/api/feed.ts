/**
 * Live events of one page: from the shared worker, or by polling every five seconds where there is no worker.
 * Also keeps the freshness: the time of the last message and the state of the connection.
 */
import { createSignal, onCleanup, type Accessor } from 'solid-js'
import type { EventBody, EventPage } from '../../controller/api/observe/event-schema.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import { storedToken } from './token.ts'
import { takeEarlyResponse } from './early-responses.ts'
import { ApiClient, Refused } from './client.ts'
import type { FeedStatus, FromFeed, ToFeed } from './feed-messages.ts'

const KEEPALIVE_EVERY_MS = 30_000
const POLL_EVERY_MS = 5_000

export interface Feed {
  readonly status: Accessor<FeedStatus>
  /** The newest summary; null before the first. */
  readonly summary: Accessor<SummaryBody | null>
  /** When the last message arrived, milliseconds since the epoch; null: none yet. */
  readonly heardAt: Accessor<number | null>
  /** Receives events in order, each once. `null`: events may be missing, read everything again. */
  onEvents(listener: (events: readonly EventBody[] | null) => void): void
}

export function createFeed(apiBase: string): Feed {
  const [status, setStatus] = createSignal<FeedStatus>('connecting')
  const [summary, setSummary] = createSignal<SummaryBody | null>(null)
  const [heardAt, setHeardAt] = createSignal<number | null>(null)
  const listeners = new Set<(events: readonly EventBody[] | null) => void>()
  let lastSeq = 0
  const notify = (events: readonly EventBody[] | null): void => {
    for (const listener of listeners) listener(events)
  }
  const receive = (message: FromFeed): void => {
    if (message.kind === 'status') setStatus(message.status)
    else if (message.kind === 'gap') {
      // A session that jumped back restarts its sequence numbers there.
      lastSeq = 0
      notify(null)
    } else if (message.kind === 'summary') {
      setSummary(message.summary)
      setHeardAt(message.at)
    } else {
      const news = message.events.filter(({ seq }) => seq > lastSeq)
      lastSeq = news.at(-1)?.seq ?? lastSeq
      setHeardAt(message.at)
      if (news.length > 0) notify(news)
    }
  }
  void takeEarlyResponse(`${apiBase}/summary`)
    ?.then(async (answer) => {
      if (answer.ok && summary() === null)
        receive({ kind: 'summary', summary: (await answer.json()) as SummaryBody, at: Date.now() })
    })
    .catch(() => {})
  onCleanup('SharedWorker' in globalThis ? fromWorker(apiBase, receive) : fromPolling(apiBase, receive))
  return {
    status,
    summary,
    heardAt,
    onEvents(listener) {
      listeners.add(listener)
      onCleanup(() => listeners.delete(listener))
    },
  }
}

/** Returns a function that disconnects. */
function fromWorker(apiBase: string, take: (message: FromFeed) => void): () => void {
  const worker = new SharedWorker(new URL('./feed-worker.ts', import.meta.url), {
    type: 'module',
    name: 'headroom-feed',
  })
  const send = (message: ToFeed): void => worker.port.postMessage(message)
  worker.port.onmessage = ({ data }: MessageEvent<FromFeed>) => take(data)
  send({ kind: 'hello', apiBase, token: storedToken() })
  const timer = setInterval(() => send({ kind: 'here' }), KEEPALIVE_EVERY_MS)
  const bye = (): void => send({ kind: 'bye' })
  // A page restored from the browser's back-forward cache announces itself again.
  const back = (event: PageTransitionEvent): void => {
    if (event.persisted) send({ kind: 'hello', apiBase, token: storedToken() })
  }
  addEventListener('pagehide', bye)
  addEventListener('pageshow', back)
  return () => {
    clearInterval(timer)
    removeEventListener('pagehide', bye)
    removeEventListener('pageshow', back)
    bye()
    worker.port.close()
  }
}

function fromPolling(apiBase: string, take: (message: FromFeed) => void): () => void {
  const client = new ApiClient(apiBase)
  let after: number | null = null
  const ask = async (): Promise<void> => {
    try {
      const summary = await client.get<SummaryBody>('/summary')
      after ??= summary.revision
      const page: EventPage = await client.get<EventPage>('/events', { after, limit: 200 })
      after = page.next_after
      take({ kind: 'status', status: 'live' })
      take({ kind: 'summary', summary, at: Date.now() })
      take({ kind: 'events', events: page.items, at: Date.now() })
    } catch (error) {
      const isRefused = error instanceof Refused && (error.status === 401 || error.status === 403)
      take({ kind: 'status', status: isRefused ? 'refused' : 'reconnecting' })
    }
  }
  void ask()
  const timer = setInterval(() => void ask(), POLL_EVERY_MS)
  return () => clearInterval(timer)
}
