/** The server of a gateway for its clients. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { limitConnections } from '../../controller/api/http/connection-limits.ts'
import { admitCall, type AdmissionOptions, type Admitted, type Refused } from './admission.ts'
import type { Calls } from './calls.ts'
import { forwardRequest } from './forward-request.ts'
import { forwardUpgrade, isWebSocket } from './forward-upgrade.ts'
import { answerRefused, answerRefusedUpgrade } from './refusal-answer.ts'

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
    answerRefusedUpgrade(socket, { status: 405, detail: 'This gateway is not a forward proxy.' })
  })
  return server
}
