/** The two servers of a gateway: for clients, and for its operator. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { hostRules } from '../../controller/api/auth/access.ts'
import { limitConnections } from '../../controller/api/http/connection-limits.ts'
import { EXPOSITION_TYPE } from '../../controller/api/metrics/exposition.ts'
import { StartFault } from '../exit-codes.ts'
import { admitCall, type AdmissionOptions, type Admitted, type Refused } from './admission.ts'
import type { Calls } from './calls.ts'
import { forwardRequest } from './forward-request.ts'
import { forwardUpgrade, isWebSocket } from './forward-upgrade.ts'
import { answerRefused, answerRefusedUpgrade } from './refusal-answer.ts'
import type { ReplicaAddress } from './replica.ts'

const MAX_CONNECTIONS = 4_096
const MAX_CONNECTIONS_PER_ADDRESS = 1_024
/** The same as the proxy of a task reads. */
const MAX_HEADER_BYTES = 32 * 1024
const HEADERS_WITHIN_MS = 15_000
const CHECK_EVERY_MS = 1_000
const IDLE_MS = 75_000
const NO_WEBSOCKET = { status: 501, detail: 'Only upgrades to a WebSocket are forwarded.' }

/** @param refresh asks the controller for what was made a moment ago */
export function clientServer(
  admission: AdmissionOptions,
  calls: Calls,
  refresh: () => Promise<void>,
): Server {
  const admit = async (request: IncomingMessage): Promise<Admitted | Refused> => {
    const admitted = admitCall(request, admission)
    if (!('isUnknown' in admitted)) return admitted
    await refresh()
    return admitCall(request, admission)
  }
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_WITHIN_MS,
    // A body may take as long as its task needs for it.
    requestTimeout: 0,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    keepAliveTimeout: IDLE_MS,
    noDelay: true,
  })
  server.maxConnections = MAX_CONNECTIONS
  limitConnections(server, [], MAX_CONNECTIONS_PER_ADDRESS)
  server.on('request', (request, response) => {
    response.on('error', () => response.destroy())
    void admit(request).then((admitted) => {
      if ('status' in admitted) answerRefused(response, admitted)
      else void forwardRequest(request, response, admitted, calls)
    })
  })
  server.on('upgrade', (request, socket: Duplex, head) => {
    socket.on('error', () => socket.destroy())
    void admit(request).then((admitted) => {
      if ('status' in admitted) answerRefusedUpgrade(socket, admitted)
      else if (isWebSocket(request)) void forwardUpgrade(request, socket, head, admitted, calls)
      else answerRefusedUpgrade(socket, NO_WEBSOCKET)
    })
  })
  // Otherwise Node answers CONNECT with nothing.
  server.on('connect', (_request, socket: Duplex) => {
    socket.on('error', () => socket.destroy())
    answerRefusedUpgrade(socket, { status: 405, detail: 'This gateway is no forward proxy.' })
  })
  return server
}

/** /metrics, /livez and /readyz, without a token: it listens on loopback unless told otherwise. */
export function adminServer(metrics: () => Promise<string>, isReady: () => boolean, isOpen: boolean): Server {
  const hosts = hostRules(isOpen ? ['*'] : [])
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' })
      response.end(text)
    }
    try {
      hosts.require(request.headers.host)
    } catch {
      return answer(421, 'The host name is unknown.\n')
    }
    if (request.method !== 'GET') return answer(405, 'Only GET is answered.\n')
    const { url } = request
    if (url === '/metrics') return void metrics().then((text) => answer(200, text, EXPOSITION_TYPE))
    if (url === '/livez' || (url === '/readyz' && isReady())) return answer(200, 'ok\n')
    if (url === '/readyz') return answer(503, 'the controller does not answer\n')
    answer(404, 'Not found. There are /metrics, /livez and /readyz.\n')
  })
}

/** Resolves with its port. @throws StartFault */
export async function listenOn(
  server: Server,
  { host, port }: ReplicaAddress,
  option: string,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is already in use' : error.message
      reject(new StartFault(`cannot listen on ${host}:${port}: ${why}. Set ${option}.`))
    })
    server.listen(port, host, resolve)
  })
  return (server.address() as AddressInfo).port
}
