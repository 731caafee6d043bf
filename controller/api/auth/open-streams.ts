/** A stream outlives the request that opened it; it ends soon after its token does. */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { callerOf } from './caller.ts'
import type { Authenticator } from './authenticator.ts'

/** How long after a token is revoked or has expired its streams may go on. */
const LOOK_EVERY_MS = 5_000

/** @returns what has to be told of every answer before it is sent. */
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

export function endStale(
  tokenOf: ReadonlyMap<ServerResponse, string>,
  authenticator: Pick<Authenticator, 'isGood'>,
): void {
  for (const [response, tokenId] of tokenOf) if (!authenticator.isGood(tokenId)) response.destroy()
}

function isStream(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith('text/event-stream')
}
