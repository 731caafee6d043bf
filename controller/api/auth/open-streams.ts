/** A stream outlives the request that opened it; it ends soon after its token does. */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiProblem } from '../http/errors.ts'
import type { Authenticator } from './authenticator.ts'
import { callerOf } from './caller.ts'

/** Maximum time that streams continue after their token was revoked or has expired. */
const LOOK_EVERY_MS = 5_000

/** @returns the function to call with every response before it is sent. */
export function endStreamsWithTheirTokens(
  app: FastifyInstance,
  authenticator: Pick<Authenticator, 'isGood'>,
): (request: FastifyRequest, reply: FastifyReply, payload: unknown) => void {
  const tokenOf = new Map<ServerResponse, string>()
  let timer: NodeJS.Timeout | undefined
  app.addHook('onListen', (done) => {
    timer = setInterval(() => endStale(tokenOf, authenticator), LOOK_EVERY_MS).unref()
    done()
  })
  app.addHook('onClose', (_app, done) => {
    clearInterval(timer)
    done()
  })
  return (request, reply, payload) => {
    if (typeof payload === 'string') return
    const { tokenId } = callerOf(request)
    if (tokenId === null || !isStream(reply.getHeader('content-type'))) return
    tokenOf.set(reply.raw, tokenId)
    reply.raw.once('close', () => tokenOf.delete(reply.raw))
  }
}

function endStale(
  tokenOf: ReadonlyMap<ServerResponse, string>,
  authenticator: Pick<Authenticator, 'isGood'>,
): void {
  for (const [response, tokenId] of tokenOf) if (!authenticator.isGood(tokenId)) response.destroy()
}

function isStream(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith('text/event-stream')
}

/**
 * Bounds the streams of one token, so that one reader cannot take them all. Requests without a token have no
 * such limit.
 */

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
      const detail = `This token already has ${MAX_STREAMS_PER_TOKEN} open streams. Close one first.`
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
