/**
 * Listens while the store is waited for, or another controller leads: health checks are answered here, and
 * everything else by the leader.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isChannelUpgrade } from '../../controller/api/channels/upgrade.ts'
import { blockListOf, limitConnections } from '../../controller/api/http/connection-limits.ts'
import {
  HEADERS_TIMEOUT_MS,
  MAX_CONNECTIONS,
  REQUEST_TIMEOUT_MS,
  TIMEOUTS_CHECKED_EVERY_MS,
} from '../../controller/api/http/limits.ts'
import type { Settings } from '../settings/settings.ts'
import { forwardRequest, forwardUpgrade } from './forward-to-leader.ts'
import { readPeerTls } from './peer-tls.ts'
import type { StandbyState } from './standby-state.ts'

/** Requests that have begun may end after the API listens on the same port. */
const END_WITHIN_MS = 10_000

/** The API then listens on the same port; 0 leaves nothing to listen on. */
export async function listenWhileWaiting(
  {
    httpHost,
    httpPort,
    trustedProxies,
    among,
  }: Pick<Settings, 'httpHost' | 'httpPort' | 'trustedProxies' | 'among'>,
  standby: StandbyState,
  log: (line: string) => void = () => {},
): Promise<{ close(): Promise<void> }> {
  if (httpPort === 0) return { close: () => Promise.resolve() }
  const options = {
    ...{ standby, name: among.name, trustedProxies: blockListOf(trustedProxies) },
    tls: readPeerTls(among.tls),
    warn: once(log),
  }
  const limits = {
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUTS_CHECKED_EVERY_MS,
    shouldUpgradeCallback: isChannelUpgrade,
  }
  const unanswered = new Set<ServerResponse>()
  let closing: Promise<void> | null = null
  const server = createServer(limits, (request, response) => {
    response.shouldKeepAlive &&= closing === null
    unanswered.add(response)
    response.once('close', () => unanswered.delete(response))
    if (!answerHealth(request, response, standby)) void forwardRequest(request, response, options)
  })
  server.maxConnections = MAX_CONNECTIONS
  limitConnections(server, trustedProxies)
  server.on('upgrade', (request, socket, head) => void forwardUpgrade(request, socket, head, options))
  // The API reports a port that cannot be used.
  await new Promise<void>((resolve) => {
    server.once('error', () => resolve())
    server.listen(httpPort, httpHost, resolve)
  })
  return { close: () => (closing ??= close()) }

  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeIdleConnections()
    // Their clients use another connection next: this one would be cut under a request.
    for (const response of unanswered) response.shouldKeepAlive = false
    setTimeout(() => server.closeAllConnections(), END_WITHIN_MS).unref()
    // The port is free at once; requests in progress may continue.
    await Promise.race([closed, new Promise<void>((resolve) => setImmediate(resolve))])
  }
}

/** Not again while the reason stays the same. */
function once(log: (line: string) => void): (line: string) => void {
  let last = ''
  return (line) => {
    if (line !== last) log(line)
    last = line
  }
}

const HEALTH = /^(?:\/api\/v1)?\/(livez|readyz|metrics)(?:\?(.*))?$/

function answerHealth(
  { url = '' }: IncomingMessage,
  response: ServerResponse,
  standby: StandbyState,
): boolean {
  const [, what, query = ''] = HEALTH.exec(url) ?? []
  if (what === undefined) return false
  if (what === 'metrics') return answerMetrics(response)
  const mustLead = new URLSearchParams(query).get('role') === 'leader'
  const isWell = what === 'livez' || (standby.leader !== null && !mustLead)
  response.writeHead(isWell ? 200 : 503, {
    'content-type': 'application/json; charset=utf-8',
    ...(isWell ? {} : { 'retry-after': '1' }),
    connection: 'close',
  })
  response.end(`${what === 'livez' ? '{"status":"alive"}' : readiness(standby, isWell)}\n`)
  return true
}

/** The leader reports the metrics of the cluster. Here they would count twice. */
function answerMetrics(response: ServerResponse): true {
  response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
  response.end(
    '# HELP headroom_controller_leads This controller leads (1), or is a standby (0).\n' +
      '# TYPE headroom_controller_leads gauge\nheadroom_controller_leads 0\n',
  )
  return true
}

function readiness({ detail }: StandbyState, ok: boolean): string {
  return JSON.stringify({
    status: ok ? 'ready' : 'not_ready',
    checks: [{ name: 'leader', ok, detail }],
  })
}
