/**
 * A proxy between browser and controller that forwards everything except the event stream, which it generates
 * at the given speed.
 */
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { EventBody, EventPage } from '../../../controller/api/observe/event-schema.ts'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'

const STREAM = '/api/v1/events/stream'
/** In two halves of each tick. */
const EVENTS_PER_TICK = 6

export class FastFeed {
  readonly #upstream: URL
  readonly #server: Server
  #readers = new Set<ServerResponse>()
  #events: readonly EventBody[] = []
  #summary: SummaryBody | null = null
  #seq = 0
  /** Ticks sent: one represents a second of a controller. */
  ticks = 0

  constructor(upstream: string) {
    this.#upstream = new URL(upstream)
    this.#server = createServer((asked, answer) => this.#answer(asked, answer))
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  end(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /**
   * Sends this number of ticks, as evenly as the machine allows, with the figures of the controller.
   * @returns the revision of the last one.
   */
  async run(ticks: number, everyMs: number): Promise<number> {
    for (let sent = 0; sent < ticks; sent++) {
      if (sent % 30 === 0) await this.#look()
      this.#sendEvents()
      await pause(everyMs / 2)
      this.#sendEvents()
      this.#send('summary', { ...this.#summary, revision: this.#seq })
      this.ticks += 1
      await pause(everyMs / 2)
    }
    return this.#seq
  }

  async #look(): Promise<void> {
    const get = async <T>(path: string): Promise<T> =>
      (await (await fetch(new URL(`/api/v1${path}`, this.#upstream))).json()) as T
    this.#summary = await get<SummaryBody>('/summary')
    this.#events = (await get<EventPage>('/events?order=newest&limit=200')).items
    this.#seq = Math.max(this.#seq, this.#summary.revision)
  }

  /** The recent events, repeatedly, each time with a new number. */
  #sendEvents(): void {
    for (let count = 0; count < EVENTS_PER_TICK / 2; count++) {
      const event = this.#events[this.#seq % this.#events.length]
      if (event === undefined) throw new Error('the controller tells of no event')
      this.#seq += 1
      this.#send('event', { ...event, seq: this.#seq }, this.#seq)
    }
  }

  #send(event: string, data: object, id?: number): void {
    const frame = `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
    for (const reader of this.#readers) reader.write(frame)
  }

  #answer(asked: IncomingMessage, answer: ServerResponse): void {
    if (asked.url?.startsWith(STREAM) === true) {
      answer.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
      answer.write(': here\n\n')
      this.#readers.add(answer)
      answer.once('close', () => this.#readers.delete(answer))
      return
    }
    const { hostname, port, host } = this.#upstream
    const options = {
      hostname,
      port,
      path: asked.url,
      method: asked.method,
      headers: { ...asked.headers, host },
    }
    const sent = request(options, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers)
      got.pipe(answer)
    })
    // A reader that has left the page waits for nothing more.
    sent.once('error', () => answer.destroy())
    answer.once('close', () => sent.destroy())
    asked.pipe(sent)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
