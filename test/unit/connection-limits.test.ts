/** One address or token cannot use up the shared limits, and slow requests end after the documented time. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { MAX_CONNECTIONS_PER_ADDRESS, sourceOf } from '../../controller/api/http/connection-limits.ts'
import { MAX_STREAMS_PER_TOKEN } from '../../controller/api/auth/open-streams.ts'
import { TIMEOUTS_CHECKED_EVERY_MS } from '../../controller/api/http/limits.ts'
import { accessWorld, type AccessWorld, type AccessWorldOptions } from '../support/access-world.ts'

let world: AccessWorld | null = null
const sockets: Socket[] = []
/** The answer is kept: when it is collected as garbage, its connection closes. */
const streams: { readonly stop: AbortController; answer?: Response }[] = []
afterEach(async () => {
  for (const { stop } of streams.splice(0)) stop.abort()
  for (const socket of sockets.splice(0)) socket.destroy()
  await world?.app.close()
  world = null
})

async function listening(
  options: AccessWorldOptions = {},
): Promise<{ readonly port: number; readonly world: AccessWorld }> {
  world = await accessWorld(options)
  await world.app.listen({ host: '127.0.0.1', port: 0 })
  return { port: (world.app.server.address() as { port: number }).port, world }
}

/** A connection that sends nothing. */
async function silent(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const isOpen = async (socket: Socket): Promise<boolean> => {
  socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const answered = once(socket, 'data').then(() => true)
  return Promise.race([answered, once(socket, 'close').then(() => false)])
}

describe('Connections', () => {
  it('of one address are limited, without effect on other addresses', async () => {
    const { port } = await listening()
    for (let i = 0; i < MAX_CONNECTIONS_PER_ADDRESS; i++) await silent(port)
    expect(await isOpen(await silent(port))).toBe(false)
    expect(await isOpen(await silent(port, '127.0.0.2'))).toBe(true)
    sockets.shift()?.destroy()
    await expect.poll(async () => isOpen(await silent(port))).toBe(true)
    const { body } = await (world as AccessWorld).ask('GET', '/metrics')
    expect(body).toMatch(/^headroom_http_connections_refused_total\{limit="address"\} [1-9]/m)
  })

  it('of a trusted proxy are not limited, because many clients use it', async () => {
    const { port } = await listening({ trustedProxies: ['127.0.0.0/8'] })
    for (let i = 0; i < MAX_CONNECTIONS_PER_ADDRESS + 10; i++) await silent(port)
    expect(await isOpen(await silent(port))).toBe(true)
  })

  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:db8::9', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('of %s count for %s', (address, source) => {
    expect(sourceOf(address)).toBe(source)
  })
})

describe('Streams', () => {
  it('of one token are limited over all kinds, without effect on other tokens', async () => {
    const { port, world: here } = await listening()
    const [first, second] = [await here.token('viewer'), await here.token('viewer')]
    const follow = async (token: string): Promise<number> => {
      const stream: (typeof streams)[number] = { stop: new AbortController() }
      streams.push(stream)
      stream.answer = await fetch(`http://127.0.0.1:${port}/api/v1/events/stream`, {
        headers: { authorization: `Bearer ${token}` },
        signal: stream.stop.signal,
      })
      return stream.answer.status
    }
    for (let i = 0; i < MAX_STREAMS_PER_TOKEN; i++) expect(await follow(first)).toBe(200)
    expect(await follow(first)).toBe(429)
    expect(await follow(second)).toBe(200)
    streams.shift()?.stop.abort()
    await expect.poll(() => follow(first)).toBe(200)
  })
})

describe('Slow requests', () => {
  it('end after the documented time: headers within 15 s, bodies within 30 s', async () => {
    const { port, world: here } = await listening()
    const { server } = here.app
    expect([server.headersTimeout, server.requestTimeout]).toEqual([15_000, 30_000])
    // Timeouts are accurate to the interval in which they are checked.
    expect(TIMEOUTS_CHECKED_EVERY_MS).toBeLessThanOrEqual(1_000)
    server.headersTimeout = 500
    const socket = await silent(port)
    socket.resume().write('GET /livez HTTP/1.1\r\n')
    const closed = once(socket, 'close').then(() => 'closed')
    expect(await Promise.race([closed, wait(10_000, 'still open')])).toBe('closed')
  })
})
