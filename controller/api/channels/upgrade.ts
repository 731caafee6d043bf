/** The connection of a client to its channel: HTTP Upgrade to frames (protocol/channel-frames.ts). */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { OpenChannels } from './open-channels.ts'

const CHANNEL_PROTOCOL = 'headroom-channel'
export const CHANNEL_PATH = '/api/v1/channels/'
const SECRET = /^[A-Za-z0-9_-]{43}$/
const ACCEPTED =
  'HTTP/1.1 101 Switching Protocols\r\n' + `Connection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\n\r\n`
const NO_CHANNEL = 'HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** All other requests stay ordinary ones, whatever they would like to be. */
export function isChannelUpgrade({ url = '', headers }: IncomingMessage): boolean {
  return url.startsWith(CHANNEL_PATH) && headers.upgrade?.toLowerCase() === CHANNEL_PROTOCOL
}

export function acceptChannels(app: FastifyInstance, channels: OpenChannels): void {
  app.server.on(
    'upgrade',
    (request: IncomingMessage, socket: Duplex & Partial<TimedSocket>, head: Buffer) => {
      const secret = (request.url ?? '').slice(CHANNEL_PATH.length)
      socket.on('error', () => socket.destroy())
      socket.setTimeout?.(0)
      socket.setNoDelay?.(true)
      socket.setKeepAlive?.(true, KEEP_ALIVE_MS)
      const accept = (): boolean => socket.write(ACCEPTED)
      if (!SECRET.test(secret) || !channels.connect(secret, socket, head, accept)) socket.end(NO_CHANNEL)
    },
  )
  app.addHook('preClose', (done) => {
    channels.closeAll()
    done()
  })
}

const KEEP_ALIVE_MS = 30_000

interface TimedSocket {
  setTimeout(ms: number): unknown
  setNoDelay(isSet: boolean): unknown
  setKeepAlive(isSet: boolean, ms: number): unknown
}
