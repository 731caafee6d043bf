/** Large answers, compressed for clients that accept it. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'

const compress = promisify(gzip)
/** Smaller answers are sent as they are. */
const LEAST_BYTES = 4_096

/** Compresses outside the main thread. @param accepted the header Accept-Encoding */
export async function sendJson(
  reply: FastifyReply,
  accepted: string | string[] | undefined,
  body: object,
): Promise<never> {
  const text = JSON.stringify(body)
  reply.type('application/json; charset=utf-8').header('vary', 'accept-encoding')
  if (text.length < LEAST_BYTES || !acceptsGzip(String(accepted ?? ''))) return text as never
  reply.header('content-encoding', 'gzip')
  return (await compress(text)) as never
}

function acceptsGzip(accepted: string): boolean {
  return accepted.split(',').some((part) => {
    const [coding, quality] = part.split(';').map((each) => each.trim().toLowerCase())
    return (coding === 'gzip' || coding === '*') && !/^q=0(\.0*)?$/.test(quality ?? '')
  })
}
