/**
 * A standby forwards each request to the leader, with the credentials of its caller. While no controller
 * leads, or the leader does not accept connections, it holds the request for a while. When another controller
 * leads before the answer begins, the request goes to that one, if it may be sent twice.
 */
import {
  request as httpRequest,
  STATUS_CODES,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { BlockList } from 'node:net'
import { isIP } from 'node:net'
import { pipeline, type Duplex } from 'node:stream'
import type { SecureContextOptions } from 'node:tls'
import { setTimeout as delay } from 'node:timers/promises'
import { PROBLEMS, type ProblemCode } from '../../controller/api/http/errors.ts'
import { NOT_LEADING } from '../../controller/api/http/leader-only.ts'
import { errorText } from '../../protocol/error-text.ts'
import { endToEnd, FORWARDED, forwardedFields } from './forwarded-headers.ts'
import type { KnownLeader, StandbyState } from './standby-state.ts'

export interface ForwardingOptions {
  readonly standby: StandbyState
  /** Name of this controller. */
  readonly name: string
  readonly trustedProxies: BlockList
  /** For a leader with an https address. */
  readonly tls?: SecureContextOptions
  /** Called once per reason why the leader cannot be reached. */
  readonly warn?: (line: string) => void
  /** How long a request waits for a leader. */
  readonly holdMs?: number
}

const HOLD_MS = 5_000
const TRY_EVERY_MS = 100
const CONNECT_WITHIN_MS = 2_000
const MAX_REPEATED_BYTES = 262_144

/** The leader has the request, or nothing of it. */
type Sent = { readonly to: ClientRequest; readonly leader: KnownLeader } | 'no_leader'

/** Sends one request to the leader, once a connection to it exists. */
async function send(
  request: IncomingMessage,
  options: ForwardingOptions,
  more: readonly string[] = [],
): Promise<Sent> {
  const { standby, name, trustedProxies, tls = {}, warn = () => {} } = options
  const until = performance.now() + (options.holdMs ?? HOLD_MS)
  // Another standby has taken this one for the leader.
  if (request.headers[FORWARDED] !== undefined) return 'no_leader'
  const address = request.socket.remoteAddress ?? ''
  const headers = [...forwardedFields(request.rawHeaders, address, trustedProxies, name), ...more]
  for (;;) {
    const leader = await standby.leaderWithin(Math.max(0, until - performance.now()))
    if (leader === null || request.socket.destroyed) return 'no_leader'
    const root = new URL(leader.url)
    const to = start(root, request, headers, tls)
    giveUpWhenReplaced(to, leader, standby)
    const fault = await connected(to, root.protocol === 'https:')
    if (fault === null) return { to, leader }
    if (fault !== CLOSED && fault !== REPLACED)
      warn(`the leader ${leader.name} at ${leader.url} cannot be reached: ${fault}`)
    if (performance.now() + TRY_EVERY_MS >= until) return 'no_leader'
    if (standby.isLatest(leader)) await delay(TRY_EVERY_MS)
  }
}

const REPLACED = 'another controller leads now'

/** A leader whose process is stopped, or whose host is gone, would not answer for long. */
function giveUpWhenReplaced(to: ClientRequest, leader: KnownLeader, standby: StandbyState): void {
  const forget = standby.onReplaced(leader, () => to.destroy(new Error(REPLACED)))
  for (const event of ['response', 'upgrade', 'close']) to.once(event, forget)
}

function start(
  root: URL,
  { url, method }: IncomingMessage,
  headers: readonly string[],
  tls: SecureContextOptions,
): ClientRequest {
  const open = root.protocol === 'https:' ? httpsRequest : httpRequest
  const port = root.port === '' ? undefined : root.port
  const host = root.hostname.replace(/^\[|\]$/g, '')
  // The certificate is that of the leader, and not of the host that the client has named.
  const secure = { ...tls, servername: isIP(host) === 0 ? host : '' }
  return open({ ...secure, host, port, path: url, method, headers, agent: false, setHost: false } as never)
}

const CLOSED = 'the connection was closed'

/** Null: it is; otherwise why not. */
function connected(sent: ClientRequest, isSecure: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const late = new Error(`no connection within ${CONNECT_WITHIN_MS} ms`)
    const timer = setTimeout(() => sent.destroy(late), CONNECT_WITHIN_MS)
    const settle = (fault: string | null): void => {
      clearTimeout(timer)
      resolve(fault)
    }
    sent.on('error', (error) => settle(errorText(error)))
    sent.once('close', () => settle(CLOSED))
    sent.once('socket', (socket) => socket.once(isSecure ? 'secureConnect' : 'connect', () => settle(null)))
  })
}

export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardingOptions,
): Promise<void> {
  const until = performance.now() + (options.holdMs ?? HOLD_MS)
  const chunked = request.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked']
  const body = await repeatableBody(request).catch(() => 'cut_off' as const)
  if (body === 'cut_off') return void response.destroy()
  for (;;) {
    const sent = await send(request, options, chunked)
    if (sent === 'no_leader') {
      if (request.headers[FORWARDED] !== undefined) response.setHeader(NOT_LEADING, '1')
      return refuse(response, 'no_leader')
    }
    const isAnswered = answered(sent.to, response, body !== null && performance.now() < until)
    if (body === null) request.pipe(sent.to)
    else sent.to.end(body)
    if (await isAnswered) return
    if (options.standby.isLatest(sent.leader)) await delay(TRY_EVERY_MS)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const mayRepeat = body !== null && !request.socket.destroyed && performance.now() < until
    if (!mayRepeat) return refuse(response, isRead ? 'no_leader' : 'commit_unknown')
  }
}

/**
 * Passes the answer on. Resolves with false when the connection ends before an answer begins, or the answer
 * is that another controller leads and the request may be sent again.
 */
function answered(to: ClientRequest, response: ServerResponse, mayRepeat: boolean): Promise<boolean> {
  const stop = (): void => void to.destroy()
  response.once('close', stop)
  return new Promise((resolve) => {
    to.on('error', () => {
      if (response.headersSent) response.destroy()
      response.off('close', stop)
      resolve(response.headersSent)
    })
    to.once('response', (answer) => {
      if (mayRepeat && answer.headers[NOT_LEADING] !== undefined) {
        answer.resume()
        response.off('close', stop)
        return resolve(false)
      }
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer.rawHeaders))
      response.flushHeaders()
      pipeline(answer, response, () => {})
      resolve(true)
    })
  })
}

/**
 * Body of a request that may be sent twice: a read, or a short one with an Idempotency-Key, of which the
 * leader carries out one. Null: another request. Rejects when the client ends in its middle.
 */
async function repeatableBody(request: IncomingMessage): Promise<Buffer | null> {
  const { method, headers } = request
  const length = Number(headers['content-length'] ?? 0)
  if (headers['transfer-encoding'] !== undefined || length > MAX_REPEATED_BYTES) return null
  if (method !== 'GET' && method !== 'HEAD' && headers['idempotency-key'] === undefined) return null
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

/** After the handshake, bytes in both directions. */
export async function forwardUpgrade(
  request: IncomingMessage,
  client: Duplex,
  early: Buffer,
  options: ForwardingOptions,
): Promise<void> {
  client.on('error', () => {})
  const fields = ['Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? '']
  const sent = await send(request, options, fields)
  if (sent === 'no_leader') return void client.end(headText(503, ['Connection', 'close', 'Retry-After', '1']))
  const { to } = sent
  client.once('close', () => to.destroy())
  to.on('error', () => client.destroy())
  to.once('upgrade', (answer, leader, head) => {
    client.write(headText(101, [...endToEnd(answer.rawHeaders), ...fields]))
    if (head.length > 0) client.write(head)
    if (early.length > 0) leader.write(early)
    pipeline(leader, client, leader, () => {})
  })
  to.once('response', (answer) => {
    client.write(headText(answer.statusCode ?? 502, [...endToEnd(answer.rawHeaders), 'Connection', 'close']))
    pipeline(answer, client, () => {})
  })
  to.end()
}

function headText(status: number, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`
  return `${text}\r\n`
}

const DETAILS = {
  no_leader: 'No controller is the leader at the moment. Try again, or use another address.',
  commit_unknown: 'The leader stopped before it answered. Repeat the request with the same Idempotency-Key.',
} as const satisfies Partial<Record<ProblemCode, string>>

function refuse(response: ServerResponse, code: keyof typeof DETAILS): void {
  const { status, title } = PROBLEMS[code]
  const id = String(response.getHeader('x-request-id') ?? '')
  const problem = { type: `urn:headroom:problem:${code}`, title, status, detail: DETAILS[code], code }
  response.writeHead(status, {
    'content-type': 'application/problem+json',
    'x-content-type-options': 'nosniff',
    'retry-after': '1',
    // What its sender still sends is not read.
    connection: 'close',
  })
  response.end(`${JSON.stringify({ ...problem, errors: [], request_id: id })}\n`)
}
