/**
 * Bounds the streams of one token, so that one reader cannot take them all. Requests without a token have no
 * such limit.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from './caller.ts'
import { ApiProblem } from '../http/errors.ts'

/** Streams that one token follows at a time, of all kinds. */
export const MAX_STREAMS_PER_TOKEN = 32

export class StreamsOfTokens {
  readonly #open = new Map<string, number>()

  /**
   * Counts until the answer ends or its reader is gone.
   * @throws ApiProblem too_many_streams.
   */
  take(request: FastifyRequest, reply: FastifyReply): void {
    const { tokenId } = callerOf(request)
    if (tokenId === null) return
    const count = this.#open.get(tokenId) ?? 0
    if (count >= MAX_STREAMS_PER_TOKEN) {
      const detail = `This token follows ${MAX_STREAMS_PER_TOKEN} streams already. Close one first.`
      throw new ApiProblem('too_many_streams', detail, { headers: { 'retry-after': '5' } })
    }
    this.#open.set(tokenId, count + 1)
    reply.raw.once('close', () => {
      const left = (this.#open.get(tokenId) ?? 0) - 1
      if (left > 0) this.#open.set(tokenId, left)
      else this.#open.delete(tokenId)
    })
  }
}
