/** HTTPS with limits and a certificate that can be renewed. What it answers is up to the subclass. */
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  createSecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'

export interface TlsIdentity {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** Authorities of the callers, which need a certificate then. */
  readonly ca?: string
}

export interface TlsServerLimits {
  readonly maxConnections: number
  /** Such a caller sends all its requests over one connection. */
  readonly offersHttp2: boolean
}

/** The API server and the scheduler wait for 10 s or less. */
const REQUEST_TIMEOUT_MS = 10_000
/** Callers in Go give up an idle connection after 90 s: a request never meets one that is being closed. */
const KEEP_ALIVE_MS = 120_000

export abstract class TlsServer {
  readonly #server: Server
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #connections = new Set<Socket>()
  readonly #inProgress = new Set<Promise<unknown>>()
  #isEnding = false

  protected constructor(identity: TlsIdentity, { maxConnections, offersHttp2 }: TlsServerLimits) {
    this.#server = offersHttp2 ? this.#withHttp2(identity) : createServer(tlsOf(identity))
    this.#server.on('request', (request, response) => {
      if (this.#isEnding) endsConnection(response)
      const ended = new Promise((resolve) => response.once('close', resolve))
      this.#inProgress.add(ended)
      void ended.then(() => this.#inProgress.delete(ended))
      void this.answer(request, response)
    })
    this.#server.on('connection', (connection: Socket) => {
      this.#connections.add(connection)
      connection.once('close', () => this.#connections.delete(connection))
    })
    this.#server.maxConnections = maxConnections
    this.#server.requestTimeout = REQUEST_TIMEOUT_MS
    this.#server.headersTimeout = REQUEST_TIMEOUT_MS
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS
  }

  protected abstract answer(request: IncomingMessage, response: ServerResponse): Promise<void>

  /** Resolves once it listens. @param port 0: any free port */
  protected listen({ host, port }: { readonly host: string; readonly port: number }): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, resolve)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** New connections use it; open connections continue. */
  renew(identity: TlsIdentity): void {
    this.#server.setSecureContext(tlsOf(identity))
  }

  /** Answers requests until then, each caller once more, and those that are in progress, then closes. */
  async close(until?: Promise<unknown>): Promise<void> {
    this.#isEnding = true
    await until
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeIdleConnections()
    for (const session of this.#sessions) session.close()
    while (this.#inProgress.size > 0) await Promise.all(this.#inProgress)
    // A caller may have connected without a request.
    for (const connection of this.#connections) connection.destroySoon()
    await closed
  }

  #withHttp2(identity: TlsIdentity): Server {
    const server = createSecureServer({ ...tlsOf(identity), allowHTTP1: true })
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
      session.setTimeout(KEEP_ALIVE_MS, () => session.close())
    })
    // Because it speaks HTTP/1.1 too, it has the limits of such a server, which its type lacks.
    return server as unknown as Server
  }
}

/** The same object for all requests of a connection. */
export function connectionOf(request: IncomingMessage): object {
  const asked: unknown = request
  return asked instanceof Http2ServerRequest ? (asked.stream.session ?? asked) : request.socket
}

/** The next request of the caller opens a new connection. */
export function endsConnection(response: ServerResponse): void {
  const answer: unknown = response
  if (answer instanceof Http2ServerResponse) answer.stream.session?.close()
  else response.setHeader('connection', 'close')
}

/**
 * The end of the stream comes with the last byte. The client in Go would otherwise reset each stream once it
 * has read the answer, and after 1,000 resets the connection is ended, with all requests on it.
 */
export function answerJson(response: ServerResponse, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value))
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const answer: unknown = response
  if (!(answer instanceof Http2ServerResponse)) return void response.writeHead(200, headers).end(body)
  if (answer.stream.destroyed) return
  answer.stream.respond({ ':status': 200, ...headers })
  answer.stream.end(body)
}

function tlsOf({ cert, key, ca }: TlsIdentity) {
  const callers = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true }
  return { cert, key, minVersion: 'TLSv1.2', ...callers } as const
}
