/** Server-sent events: one stream for each reader, bounded in number. */
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { ApiProblem, invalidField } from './errors.ts'

/** A comment this often tells both ends, and what lies between, that the connection lives. */
export const HEARTBEAT_MS = 15_000
/** Readers at a time. */
export const MAX_STREAMS = 256

/** `event` is what a reader listens for; `id` returns as Last-Event-ID. */
export function sseEvent(event: string, data: unknown, id?: number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}

export const SSE_HEARTBEAT = ': still here\n\n'

export class EventStreams {
  #open = 0

  /**
   * Sends what `pieces` yields until it ends or the reader goes away, and not faster than the reader takes
   * it.
   * @param pieces its argument aborts when the reader goes away: a generator that waits ends no earlier
   */
  send(
    reply: FastifyReply,
    pieces: (gone: AbortSignal) => AsyncGenerator<string, void, undefined>,
  ): FastifyReply {
    if (this.#open >= MAX_STREAMS) {
      throw new ApiProblem('too_many_streams', `${MAX_STREAMS} streams are already open. Close one first.`, {
        headers: { 'retry-after': '5' },
      })
    }
    this.#open += 1
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const stream = Readable.from(pieces(gone.signal), { objectMode: true, highWaterMark: 1 })
    stream.once('close', () => {
      this.#open -= 1
    })
    return sendStream(reply, stream)
  }
}

/** No proxy shall keep it back. */
export function sendStream(reply: FastifyReply, body: Readable): FastifyReply {
  return reply.code(200).type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no').send(body)
}

/** @throws ApiProblem when the header is invalid. */
export function lastEventId(header: string | readonly string[] | undefined): number | null {
  if (header === undefined || header === '') return null
  if (typeof header === 'string' && /^\d{1,15}$/.test(header)) return Number(header)
  throw invalidField('/Last-Event-ID', 'the header Last-Event-ID must be the ID of an event in this stream')
}
