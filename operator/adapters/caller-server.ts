/** JSON over HTTPS with certificates on both sides. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { AnswerTooLarge, textOf } from './answer-bytes.ts'
import { answerJson, connectionOf, endsConnection, type TlsIdentity, TlsServer } from './tls-server.ts'

export type ServerIdentity = Required<TlsIdentity>

/**
 * Null: this replica does not lead. Rejects with Malformed or Forbidden.
 * @param token of the header Authorization; empty: none
 */
export type Route = (asked: unknown, token: string) => Promise<object | null>

export interface CallerServerOptions extends ServerIdentity {
  readonly host: string
  readonly port: number
  readonly maxConnections: number
  readonly maxRequestBytes: number
  /** POST, by the common name in the certificate of the caller, then by path. */
  readonly routes: ReadonlyMap<string, ReadonlyMap<string, Route>>
  readonly log: (message: string) => void
}

/** The caller learns the message. */
export class Malformed extends Error {
  override readonly name = 'Malformed'
}

/** The caller learns the message. */
export class Forbidden extends Error {
  override readonly name = 'Forbidden'
}

export class CallerServer extends TlsServer {
  readonly #options: CallerServerOptions
  /** Common names of the callers, by connection. */
  readonly #callers = new WeakMap<object, string>()

  private constructor(options: CallerServerOptions) {
    super(options, { maxConnections: options.maxConnections, offersHttp2: true })
    this.#options = options
  }

  /** Resolves once it listens. */
  static async start(options: CallerServerOptions): Promise<CallerServer> {
    const server = new CallerServer(options)
    await server.listen(options)
    return server
  }

  /** The certificate is the same for all requests of a connection. */
  #callerOf(request: IncomingMessage): string {
    const connection = connectionOf(request)
    const known = this.#callers.get(connection)
    if (known !== undefined) return known
    const { CN: name = '' } = (request.socket as TLSSocket).getPeerCertificate().subject ?? {}
    this.#callers.set(connection, name)
    return name
  }

  protected override async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { routes, maxRequestBytes, log } = this.#options
    const caller = this.#callerOf(request)
    const own = routes.get(caller)
    if (own === undefined) return refuse(response, 403)
    const route = request.method === 'POST' ? own.get(request.url ?? '') : undefined
    if (route === undefined) return void response.writeHead(404).end()
    try {
      const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
      const answer = await route(JSON.parse(await textOf(request, maxRequestBytes)), token)
      // A new connection may reach the one that leads.
      if (answer === null) return refuse(response, 503, 'another operator leads')
      answerJson(response, answer)
    } catch (error) {
      const code = codeOf(error)
      const kind = error instanceof Error ? error.name : 'unknown error'
      log(`${caller}: ${request.url} answered ${code}: ${kind}`)
      if (!response.headersSent) refuse(response, code, toldOf(error))
    }
  }
}

/** The connection ends too. */
function refuse(response: ServerResponse, code: number, why?: string): void {
  endsConnection(response)
  response.writeHead(code).end(why)
}

function codeOf(error: unknown): number {
  if (error instanceof Malformed || error instanceof SyntaxError) return 400
  if (error instanceof Forbidden) return 403
  return error instanceof AnswerTooLarge ? 413 : 500
}

function toldOf(error: unknown): string | undefined {
  return error instanceof Malformed || error instanceof Forbidden ? error.message : undefined
}
