/**
 * One stream of events and summaries that reconnects where it broke off. It runs in the shared worker, so all
 * tabs share one connection.
 */
import { createParser } from 'eventsource-parser'
import type { EventBody } from '../../controller/api/observe/event-schema.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import type { FromFeed } from './feed-messages.ts'

/** A summary arrives each second, so after this long without a byte the connection is considered lost. */
const SILENCE_MS = 5_000
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 2_000

export class FeedConnection {
  readonly #apiBase: string
  readonly #token: string | null
  readonly #send: (message: FromFeed) => void
  readonly #stop = new AbortController()
  #lastId: string | null = null

  constructor(apiBase: string, token: string | null, send: (message: FromFeed) => void) {
    this.#apiBase = apiBase
    this.#token = token
    this.#send = send
  }

  close(): void {
    this.#stop.abort()
  }

  /** Runs until the connection is closed. */
  async run(): Promise<void> {
    let failures = 0
    while (!this.#stop.signal.aborted) {
      try {
        await this.#follow(() => (failures = 0))
      } catch {
        // The status below covers every failure.
      }
      if (this.#stop.signal.aborted) return
      this.#send({ kind: 'status', status: this.#isRefused ? 'refused' : 'reconnecting' })
      failures += 1
      await pause(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures))
    }
  }

  #isRefused = false

  async #follow(onLive: () => void): Promise<void> {
    this.#isRefused = false
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS)
    const resetTimer = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), SILENCE_MS)
    }
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (this.#token !== null) headers['authorization'] = `Bearer ${this.#token}`
      if (this.#lastId !== null) headers['last-event-id'] = this.#lastId
      const response = await fetch(`${this.#apiBase}/events/stream?summary=true`, {
        headers,
        signal: AbortSignal.any([silence.signal, this.#stop.signal]),
      })
      this.#isRefused = response.status === 401 || response.status === 403
      if (response.status === 410 || response.status === 400) {
        this.#lastId = null
        this.#send({ kind: 'gap' })
      }
      if (!response.ok || response.body === null) return
      onLive()
      this.#send({ kind: 'status', status: 'live' })
      await this.#read(response.body, resetTimer)
    } finally {
      clearTimeout(timer)
    }
  }

  async #read(body: ReadableStream<Uint8Array>, resetTimer: () => void): Promise<void> {
    let batch: EventBody[] = []
    const flush = (): void => {
      if (batch.length > 0) this.#send({ kind: 'events', events: batch, at: Date.now() })
      batch = []
    }
    const parser = createParser({
      onId: (id) => (this.#lastId = id),
      onEvent: ({ event, data }) => {
        if (event === 'event') {
          if (batch.push(JSON.parse(data) as EventBody) === 1) setTimeout(flush, 0)
        } else if (event === 'summary')
          this.#send({ kind: 'summary', summary: JSON.parse(data) as SummaryBody, at: Date.now() })
      },
    })
    const decoder = new TextDecoder()
    const reader = body.getReader()
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      resetTimer()
      parser.feed(decoder.decode(part.value, { stream: true }))
    }
    flush()
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
