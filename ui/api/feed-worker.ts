/**
 * The shared worker: one connection for all tabs of a browser. Over HTTP/1.1 a browser opens at most six
 * connections to a host, so a seventh tab with its own stream could load nothing else.
 */
import { FeedConnection } from './feed-connection.ts'
import type { FromFeed, ToFeed } from './feed-messages.ts'

/** A closed tab sends no message. An open tab sends one at least every minute, also in the background. */
const LISTENER_TIMEOUT_MS = 150_000
const CHECK_EVERY_MS = 30_000

interface Listener {
  readonly port: MessagePort
  lastMessageAt: number
}

interface Feed {
  readonly listeners: Set<Listener>
  readonly connection: FeedConnection
  /** The messages that a new tab receives first. */
  lastStatus: FromFeed | null
  lastSummary: FromFeed | null
}

const feeds = new Map<string, Feed>()

;(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports }) => {
  const port = ports[0] as MessagePort
  let feed: Feed | null = null
  const listener: Listener = { port, lastMessageAt: Date.now() }
  port.onmessage = ({ data }: MessageEvent<ToFeed>) => {
    listener.lastMessageAt = Date.now()
    if (data.kind === 'hello') {
      feed = join(data.apiBase, data.token, listener)
    } else if (data.kind === 'bye' && feed !== null) leave(feed, listener)
  }
}

setInterval(() => {
  for (const feed of feeds.values()) {
    for (const listener of feed.listeners)
      if (Date.now() - listener.lastMessageAt > LISTENER_TIMEOUT_MS) leave(feed, listener)
  }
}, CHECK_EVERY_MS)

function join(apiBase: string, token: string | null, listener: Listener): Feed {
  const key = JSON.stringify([apiBase, token])
  const known = feeds.get(key)
  const feed = known ?? newFeed(key, apiBase, token)
  feed.listeners.add(listener)
  for (const message of [feed.lastStatus, feed.lastSummary])
    if (message !== null) listener.port.postMessage(message)
  return feed
}

function newFeed(key: string, apiBase: string, token: string | null): Feed {
  const listeners = new Set<Listener>()
  const connection = new FeedConnection(apiBase, token, (message) => {
    if (message.kind === 'status') feed.lastStatus = message
    if (message.kind === 'summary') feed.lastSummary = message
    for (const { port } of listeners) port.postMessage(message)
  })
  const feed: Feed = { listeners, connection, lastStatus: null, lastSummary: null }
  feeds.set(key, feed)
  void connection.run()
  return feed
}

function leave(feed: Feed, listener: Listener): void {
  feed.listeners.delete(listener)
  if (feed.listeners.size > 0) return
  feed.connection.close()
  for (const [key, each] of feeds) if (each === feed) feeds.delete(key)
}
