/** Connections that a task closes because they are idle, while its proxy holds a request on them. */
import { describe, expect, it } from 'vitest'
import { guardWorld, until } from '../support/guard-world.ts'
import { LISTEN, proxied, serving, type ProxiedTask, type TestClient } from '../support/proxied-task.ts'

/** Names the connections in the order in which they were accepted; closes idle ones after a second. */
const HTTP = (more = ''): string => `
  let n = 0
  const options = { keepAliveTimeout: 1000, keepAliveTimeoutBuffer: 0 }
  const s = require("http").createServer(options, (q, a) => {
    let size = 0
    q.on("data", (d) => (size += d.length))
    q.on("end", () => a.end(q.socket.mine + " " + q.url + " " + size))
  })
  s.on("connection", (c) => { c.mine = n++ })
  ${more}
  ${LISTEN}`
/** Neither from its start on nor at once: the proxy must hold the next request first. */
const CLOSES_AFTER_AN_ANSWER =
  's.once("request", (q, a) => a.on("finish", () => setTimeout(() => s.close(), 1200)))'
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const IDLE_MS = 1_500
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function answered(
  protocol: 'http' | 'engine' | 'tcp',
  program = HTTP(),
): Promise<{ proxy: ProxiedTask; client: TestClient; order: (order: 'hold' | 'pass') => Promise<string> }> {
  const world = await guardWorld()
  const proxy = await proxied(world, 'model', await serving(world, 'model', program), { protocol })
  const client = await proxy.client()
  client.socket.write(get('/v1/first'))
  await until('it is answered', () => client.text.endsWith('0 /v1/first 0'))
  return { proxy, client, order: (order) => proxy.link.ask(order) }
}

describe.each(['http', 'engine'] as const)(
  'a request on an idle connection that the task closes (%s)',
  (protocol) => {
    it('is answered on another connection when the task is back', async () => {
      const { proxy, client, order } = await answered(protocol)
      await order('hold')
      client.socket.write(get('/v1/second'))
      await until('it is held', async () => (await proxy.counts()).held === 1)
      await pause(IDLE_MS)
      expect([client.isEnded, client.isClosed]).toEqual([false, false])
      expect((await proxy.counts()).held).toBe(1)
      await order('pass')
      await until('it is answered', () => client.text.endsWith('1 /v1/second 0'))
      client.socket.write(get('/v1/third'))
      await until('the next one, too', () => client.text.endsWith('1 /v1/third 0'))
      expect(await proxy.counts()).toMatchObject({ held: 0, open: 1, denied: 0, expired: 0 })
    })

    it('arrives as a whole, however large it is and whenever its rest is sent', async () => {
      const { client, order } = await answered(protocol)
      const body = 'x'.repeat(1_000_000)
      await order('hold')
      client.socket.write(`POST /v1/large HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`)
      client.socket.write(body.slice(0, 100_000))
      await pause(IDLE_MS)
      client.socket.write(body.slice(100_000))
      await order('pass')
      await until('it is answered', () => client.text.endsWith('1 /v1/large 1000000'))
    })

    it('gets 503 when it has waited for too long', async () => {
      const world = await guardWorld()
      const target = await serving(world, 'model', HTTP())
      const proxy = await proxied(world, 'model', target, { protocol, holdMs: 2_500 })
      const client = await proxy.client()
      client.socket.write(get('/v1/first'))
      await until('it is answered', () => client.text.endsWith('0 /v1/first 0'))
      await proxy.link.ask('hold')
      client.socket.write(get('/v1/second'))
      await until('it is refused', () => client.isEnded)
      expect(client.text).toMatch(/HTTP\/1.1 503 [^]*Retry-After/)
      expect(await proxy.counts()).toMatchObject({ held: 0, expired: 1 })
    })

    it('gets 503 when nothing listens after the return', async () => {
      const { proxy, client, order } = await answered(
        protocol,
        HTTP(`setInterval(() => {}, 1e6); ${CLOSES_AFTER_AN_ANSWER}`),
      )
      await order('hold')
      client.socket.write(get('/v1/second'))
      await pause(IDLE_MS)
      await order('pass')
      await until('it is refused', () => client.isEnded)
      expect(client.text).toMatch(/HTTP\/1.1 503 [^]*Headroom-Refusal: not-listening/)
      expect(await proxy.counts()).toMatchObject({ held: 0, denied: 1 })
    })
  },
)

describe('the end of a connection reaches the client', () => {
  it('when no request waits on it', async () => {
    const { client, order } = await answered('http')
    await order('hold')
    await until('it has ended', () => client.isEnded)
    expect(client.text.match(/HTTP/g)).toHaveLength(1)
  })

  it('when what waits is not a request, but the rest of one', async () => {
    const { client, order } = await answered('http')
    await order('hold')
    client.socket.write('the rest of a body\r\n\r\n')
    await until('it has ended', () => client.isEnded)
  })

  it('when the task has got something that it has not answered', async () => {
    const program = HTTP(
      's.on("request", (q) => q.url === "/v1/half" && setTimeout(() => q.socket.end(), 800));',
    )
    const { client, order } = await answered('http', program)
    client.socket.write('POST /v1/half HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
    await pause(200)
    await order('hold')
    client.socket.write(get('/v1/second'))
    await until('it has ended', () => client.isEnded || client.isClosed)
  })

  it('when the port does not declare HTTP', async () => {
    const { client, order } = await answered('tcp')
    await order('hold')
    client.socket.write(get('/v1/second'))
    await until('it has ended', () => client.isEnded)
  })
})
