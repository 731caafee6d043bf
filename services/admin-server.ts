/** The server of a process for its operator, and listening on an address. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostRules } from '../controller/api/auth/access.ts'
import { EXPOSITION_TYPE } from '../controller/api/metrics/exposition.ts'
import { StartFault } from './exit-codes.ts'

export interface AdminAnswer {
  readonly status: number
  readonly text: string
  readonly type: string
}

/** /metrics, /livez and /readyz, without a token: it listens on loopback unless told otherwise. */
export function adminServer(
  metrics: () => Promise<string>,
  /** Null: it is ready; otherwise why not. */
  whyNotReady: () => string | null,
  isOpen: boolean,
  /** Of requests to other paths. */
  answerOf: (request: IncomingMessage) => AdminAnswer | null = () => null,
): Server {
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
    const own = answerOf(request)
    if (own !== null) return answer(own.status, own.text, own.type)
    if (request.method !== 'GET') return answer(405, 'Only GET is supported.\n')
    const { url } = request
    if (url === '/metrics') return void metrics().then((text) => answer(200, text, EXPOSITION_TYPE))
    if (url === '/livez') return answer(200, 'ok\n')
    if (url === '/readyz') {
      const why = whyNotReady()
      return why === null ? answer(200, 'ok\n') : answer(503, `${why}\n`)
    }
    answer(404, 'Not found. Use /metrics, /livez or /readyz.\n')
  })
}

/** Resolves with its port. @throws StartFault */
export async function listenOn(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  option: string,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenFault(error, { host, port }, option)))
    server.listen(port, host, resolve)
  })
  return (server.address() as AddressInfo).port
}

/** Says in one line why a server cannot listen. */
export function listenFault(
  error: Error,
  { host, port }: { readonly host: string; readonly port: number },
  option: string,
): StartFault {
  const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  const why = isTaken ? 'the port is already in use' : error.message
  return new StartFault(`cannot listen on ${host}:${port}: ${why}. Set ${option}.`)
}
