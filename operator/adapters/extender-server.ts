/**
 * The extender of the scheduler of Kubernetes, over HTTPS with certificates on both sides: only the scheduler
 * may ask. The names of fields are those of k8s.io/kube-scheduler/extender/v1.
 */
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FilterAnswer } from '../placing/pod-bindings.ts'
import { AnswerTooLarge, textOf } from './answer-bytes.ts'

/** Null: this operator does not lead. */
export interface Extender {
  filter(podUid: string, nodeNames: readonly string[]): FilterAnswer
  bind(podUid: string, nodeName: string): Promise<string | null>
}

export interface ServerIdentity {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** Authorities of the callers. */
  readonly ca: string
}

export interface ExtenderServerOptions extends ServerIdentity {
  readonly host: string
  readonly port: number
  /** Common name in the certificate of the scheduler. */
  readonly caller: string
  readonly extender: () => Extender | null
  readonly log: (message: string) => void
}

/** Names of 10,000 nodes, and a pod. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 10_000
const MAX_CONNECTIONS = 64

type Fields = Readonly<Record<string, unknown>>

export class ExtenderServer {
  readonly #server: Server
  readonly #options: ExtenderServerOptions

  private constructor(options: ExtenderServerOptions) {
    this.#options = options
    this.#server = createServer(tlsOf(options), (request, response) => void this.#answer(request, response))
    this.#server.maxConnections = MAX_CONNECTIONS
    this.#server.requestTimeout = REQUEST_TIMEOUT_MS
    this.#server.headersTimeout = REQUEST_TIMEOUT_MS
  }

  /** Resolves once it listens. */
  static async start(options: ExtenderServerOptions): Promise<ExtenderServer> {
    const server = new ExtenderServer(options)
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject)
      server.#server.listen(options.port, options.host, resolve)
    })
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** New connections use it; those that are open go on. */
  renew(identity: ServerIdentity): void {
    this.#server.setSecureContext(tlsOf(identity))
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeIdleConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { caller, extender: current, log } = this.#options
    const { CN: name } = (request.socket as TLSSocket).getPeerCertificate().subject ?? {}
    if (name !== caller) return void response.writeHead(403, { connection: 'close' }).end()
    const isKnown = request.url === '/filter' || request.url === '/bind'
    if (request.method !== 'POST' || !isKnown) return void response.writeHead(404).end()
    try {
      const asked = fieldsOf(JSON.parse(await textOf(request, MAX_REQUEST_BYTES)))
      const extender = current()
      // A new connection may reach the one that leads.
      if (extender === null)
        return void response.writeHead(503, { connection: 'close' }).end('another operator leads')
      const answer = request.url === '/filter' ? filtered(extender, asked) : await bound(extender, asked)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    } catch (error) {
      const code = error instanceof SyntaxError ? 400 : error instanceof AnswerTooLarge ? 413 : 500
      log(
        `extender: ${request.url} answered ${code}: ${error instanceof Error ? error.name : 'unknown error'}`,
      )
      if (!response.headersSent) response.writeHead(code, { connection: 'close' }).end()
    }
  }
}

function tlsOf({ cert, key, ca }: ServerIdentity) {
  return { cert, key, ca, minVersion: 'TLSv1.2', requestCert: true, rejectUnauthorized: true } as const
}

function filtered(extender: Extender, asked: Fields): object {
  const { uid } = fieldsOf(fieldsOf(asked['Pod'])['metadata'])
  const names = asked['NodeNames']
  if (typeof uid !== 'string' || !Array.isArray(names)) return { Error: 'Pod or NodeNames is missing' }
  const { nodeNames, failed } = extender.filter(
    uid,
    names.filter((name) => typeof name === 'string'),
  )
  return { NodeNames: nodeNames, FailedNodes: failed, Error: '' }
}

async function bound(extender: Extender, asked: Fields): Promise<object> {
  const { PodUID: uid, Node: node } = asked
  if (typeof uid !== 'string' || typeof node !== 'string') return { Error: 'PodUID or Node is missing' }
  return { Error: (await extender.bind(uid, node)) ?? '' }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
