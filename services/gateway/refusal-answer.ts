/** Answers of the gateway itself. */
import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Failure } from './calls.ts'
import type { Refused } from './admission.ts'

const RETRY_AFTER_S = 5
/** Maximum amount of data that is read from a client before its connection is closed. */
const READ_BYTES = 64 * 1024

/** The answer to a call that has failed before it was answered. */
export function refusalOf(
  failure: Failure | 'full' | 'unreachable' | 'broken',
  holdSeconds: number,
): Refused {
  switch (failure) {
    case 'full':
      return { status: 503, detail: 'Too many requests are waiting for this endpoint. Try again later.' }
    case 'late':
      return { status: 503, detail: `No task was ready within ${holdSeconds} s. Try again.` }
    case 'ended':
      return { status: 503, detail: 'The last task of this endpoint has ended. Try again.' }
    case 'unreachable':
      return { status: 503, detail: 'The task does not accept connections. Try again.' }
    case 'gone':
      return { status: 502, detail: 'The task ended before it answered.' }
    case 'broken':
      return { status: 502, detail: 'The task closed the connection before it answered.' }
    case 'revoked':
      return { status: 401, detail: 'The token was revoked or has expired.' }
  }
}

export function answerRefused(response: ServerResponse, { status, detail }: Refused): void {
  const { req } = response
  const mayRead = Number(req.headers['content-length'] ?? 0) <= READ_BYTES
  const isSmall = mayRead && req.headers['transfer-encoding'] === undefined
  response.writeHead(status, {
    ...fieldsOf(status),
    'content-type': 'application/json',
    ...(isSmall ? {} : { connection: 'close' }),
  })
  response.end(textOf({ status, detail }))
}

/** The same on a connection that asked for an upgrade; it is closed. */
export function answerRefusedUpgrade(socket: Duplex, refused: Refused): void {
  const text = textOf(refused)
  const fields = { ...fieldsOf(refused.status), 'content-type': 'application/json', connection: 'close' }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status] ?? ''}\r\n${lines.join('')}`
  socket.end(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
}

function fieldsOf(status: number): Record<string, string> {
  return {
    'x-content-type-options': 'nosniff',
    ...(status === 503 ? { 'retry-after': String(RETRY_AFTER_S) } : {}),
    ...(status === 401 ? { 'www-authenticate': 'Bearer realm="headroom"' } : {}),
  }
}

/** The form that clients of models know from other servers. */
function textOf({ status, detail }: Refused): string {
  return `${JSON.stringify({ error: { message: detail, type: 'headroom_gateway', code: status } })}\n`
}
