/** HTTP Upgrade, which the global `fetch` does not offer. */
import { request as overHttp, type ClientRequest } from 'node:http'
import { request as overTls } from 'node:https'
import type { Duplex } from 'node:stream'
import { UnexpectedAnswer } from './errors.ts'
import { socketPathIn } from './socket-fetch.ts'

/**
 * Resolves with the connection once the server speaks the protocol.
 * @param url of the controller, also `unix:///path`
 * @throws UnexpectedAnswer when it answers otherwise; rejects with the error of the connection
 */
export function upgraded(url: string, path: string, protocol: string, withinMs: number): Promise<Duplex> {
  const headers = { connection: 'Upgrade', upgrade: protocol }
  const socketPath = socketPathIn(url)
  const open = (): ClientRequest => {
    if (socketPath !== null) return overHttp({ socketPath, path, headers: { host: 'localhost', ...headers } })
    const target = new URL(`${url}${path}`)
    return target.protocol === 'https:' ? overTls(target, { headers }) : overHttp(target, { headers })
  }
  return new Promise((resolve, reject) => {
    const request = open()
    const timer = setTimeout(() => request.destroy(new DOMException('', 'TimeoutError')), withinMs)
    request.once('upgrade', (_response, socket: Duplex, head: Buffer) => {
      clearTimeout(timer)
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    request.once('response', (response) => {
      clearTimeout(timer)
      response.destroy()
      reject(
        new UnexpectedAnswer(
          `${url} answered ${response.statusCode ?? 0} instead of connecting to the task. Does a proxy on ` +
            'the way pass HTTP Upgrade?',
        ),
      )
    })
    request.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    request.end()
  })
}
