/** HTTP over a Unix socket, which the global `fetch` cannot open. */
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'

/** `unix:///path` of an address; null for an address of another kind. */
export function socketPathIn(url: string): string | null {
  return url.startsWith(UNIX) ? decodeURIComponent(url.slice(UNIX.length)) : null
}

const UNIX = 'unix://'
/** Statuses whose answers have no body. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304])

interface SocketRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly body?: string | Uint8Array<ArrayBuffer>
}

/** Rejects as `fetch` does: with the reason of the signal, or an error with a `code`. */
export async function socketFetch(
  socketPath: string,
  path: string,
  { method, headers, signal, body }: SocketRequest,
): Promise<Response> {
  signal.throwIfAborted()
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const asked = { socketPath, path, method, signal, headers: { host: 'localhost', ...headers, ...length } }
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(asked, resolve).once('error', reject).end(body)
    })
    return responseOf(answer)
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

function responseOf(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 0
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(answer.headersDistinct))
    for (const value of values) headers.append(name, value)
  if (BODYLESS.has(status)) answer.resume()
  const body = BODYLESS.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
  return new Response(body as ConstructorParameters<typeof Response>[0], { status, headers })
}
