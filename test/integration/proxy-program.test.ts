/** The forwarding proxy of the guard program in front of real tasks: what it passes, holds and refuses. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { attemptFolder, guardWorld, isRoot, NOBODY, until } from '../support/guard-world.ts'
import {
  ECHO,
  LISTEN,
  linked,
  ORDER,
  proxied,
  proxiesOf,
  serving,
  type TestClient,
} from '../support/proxied-task.ts'

/** Says how it ended, for each connection. */
const REPORT =
  'const s = require("net").createServer({ allowHalfOpen: true }, (c) => { let n = 0; ' +
  'c.on("data", (d) => { n += d.length; if (String(d).includes("reset")) c.resetAndDestroy() }); ' +
  'c.on("end", () => { console.log("end " + n); c.end("bytes " + n) }); ' +
  'c.on("error", (e) => console.log(e.code)) }); ' +
  LISTEN
describe('a connection that is passed on', () => {
  it('carries 10 MB in each direction unchanged', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'echo', await serving(world, 'echo', ECHO))
    const bytes = randomBytes(10 * 1024 * 1024)
    const client = await proxy.client()
    client.socket.end(bytes)
    await until('it ends', () => client.isEnded)
    expect(sha256(client.bytes)).toBe(sha256(bytes))
    expect(await proxy.counts()).toMatchObject({ accepted: 1, refused: 0, denied: 0, held: 0 })
    await expect.poll(async () => (await proxy.counts()).open).toBe(0)
  })

  it('waits for a slow reader without losing a byte', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'echo', await serving(world, 'echo', ECHO))
    const bytes = randomBytes(10 * 1024 * 1024)
    const client = await proxy.client()
    client.socket.end(bytes)
    client.socket.pause()
    await delay(500)
    for (let size = -1; size < bytes.length; size = client.size) {
      client.socket.resume()
      await delay(5)
      client.socket.pause()
    }
    client.socket.resume()
    await until('it ends', () => client.isEnded)
    expect(sha256(client.bytes)).toBe(sha256(bytes))
  })

  it('is one of many at a time', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'echo', await serving(world, 'echo', ECHO))
    const all = await Promise.all(Array.from({ length: 300 }, () => proxy.client()))
    const bytes = randomBytes(100_000)
    for (const client of all) client.socket.end(bytes)
    await until('all end', () => all.every((client) => client.isEnded))
    for (const client of all) expect(client.bytes.equals(bytes)).toBe(true)
    await expect.poll(async () => (await proxy.counts()).open).toBe(0)
  })

  it('can end in one direction and continue in the other', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'report', await serving(world, 'report', REPORT))
    const client = await proxy.client()
    client.socket.write('12345')
    client.socket.end()
    await client.receives('bytes 5')
    const fromTask =
      'const s = require("net").createServer({ allowHalfOpen: true }, (c) => { c.end("first"); ' +
      `c.on("data", (d) => console.log("got " + d)) }); ${LISTEN}`
    const other = await proxied(world, 'half', await serving(world, 'half', fromTask))
    const reader = await other.client()
    await until('the task has ended its side', () => reader.isEnded && reader.text === 'first')
    reader.socket.write('late')
    await expect.poll(() => world.output('half')).toContain('got late')
    reader.socket.end()
    await expect.poll(async () => (await other.counts()).open).toBe(0)
  })

  it('is reset on both sides when one side resets it', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'report', await serving(world, 'report', REPORT))
    const resets = await proxy.client()
    resets.socket.write('hello')
    await expect.poll(async () => (await proxy.counts()).open).toBe(1)
    await delay(100)
    resets.socket.resetAndDestroy()
    await expect.poll(() => world.output('report')).toContain('ECONNRESET')
    const isReset = await proxy.client()
    isReset.socket.write('reset')
    await until('it is reset', () => isReset.error === 'ECONNRESET')
    await expect.poll(async () => (await proxy.counts()).open).toBe(0)
  })

  it.skipIf(!isRoot)('reaches a task of another user, and one that has a network of its own', async () => {
    const world = await guardWorld()
    const other = { uid: NOBODY, gid: NOBODY }
    const ofOther = await proxied(world, 'other', await serving(world, 'other', ECHO, { user: other }))
    const prefix = 'PATH=$PATH:/usr/sbin exec unshare -n sh -c "ip link set lo up; exec \\"\\$@\\"" sh'
    const inOther = await proxied(world, 'space', await serving(world, 'space', ECHO, { prefix }))
    for (const proxy of [ofOther, inOther]) {
      const client = await proxy.client()
      client.socket.end('hello')
      await client.receives('hello')
    }
  })

  it('goes to a task that begins to listen while clients ask all the time', async () => {
    const world = await guardWorld()
    const port = await freePort()
    const late = `setTimeout(() => { ${ECHO} }, 1500)`
    await world.sh('late', `exec ${process.execPath} -e '${late}' ${port}`)
    const proxy = await proxied(world, 'late', port)
    const began = performance.now()
    for (let text = ''; text === '';) {
      const client = await proxy.client()
      client.socket.end('hello')
      await until('it is over', () => client.isClosed || client.isEnded)
      text = client.text
      expect(performance.now() - began).toBeLessThan(10_000)
      await delay(20)
    }
  })

  it('goes to the task only where it listens when it begins', async () => {
    const world = await guardWorld()
    const port = await freePort()
    await world.sh('late', 'exec sleep 1000')
    const proxy = await proxied(world, 'late', port)
    const refused = await proxy.client()
    await until('it is refused', () => refused.error === 'ECONNRESET')
    const other = await serving(world, 'other', ECHO)
    const wrong = await proxied(world, 'late', other, { folder: attemptFolder(world.folder, 'late') }).catch(
      String,
    )
    expect(wrong).toBe('Error: its control socket: another one runs')
    expect(await proxy.counts()).toMatchObject({ denied: 1 })
  })
})

describe('a port that is not the task’s own', () => {
  it.each([
    ['another task', async (world: Awaited<ReturnType<typeof guardWorld>>) => serving(world, 'other', ECHO)],
    ['a process of the host, such as the controller or the broker', async () => listenHere()],
    ['the proxy itself', async () => 0],
  ])('is refused: %s', async (_, open) => {
    const world = await guardWorld()
    await world.sh('mine', 'exec sleep 1000')
    const asked = await open(world)
    const own = await freePort()
    const proxy = await proxied(
      world,
      'mine',
      asked === 0 ? own : asked,
      asked === 0 ? { ports: { from: own, to: own }, next: own } : {},
    )
    const client = await proxy.client()
    await until('it is refused', () => client.error === 'ECONNRESET')
    expect(await proxy.counts()).toMatchObject({ denied: 1, open: 0 })
  })

  it('is refused when another process listens on the same port everywhere', async () => {
    const world = await guardWorld()
    const target = await serving(world, 'mine', ECHO)
    const proxy = await proxied(world, 'mine', target)
    const before = await proxy.client()
    before.socket.end('one')
    await before.receives('one')
    const contender = createServer((socket) => socket.end('wrong'))
    await new Promise<void>((done) => contender.listen({ port: target, host: '::', ipv6Only: true }, done))
    const during = await proxy.client()
    await until('it is refused', () => during.error === 'ECONNRESET')
    await new Promise((done) => contender.close(done))
    await delay(150)
    const after = await proxy.client()
    after.socket.end('two')
    await after.receives('two')
  })

  it('is refused when another process has taken it over from the task', async () => {
    const world = await guardWorld()
    const yields =
      'const s = require("net").createServer((c) => { c.on("data", () => s.close()); c.write("up") }); ' +
      LISTEN
    const port = await serving(world, 'first', yields)
    const proxy = await proxied(world, 'first', port)
    const before = await proxy.client()
    await before.receives('up')
    before.socket.write('close')
    const server = createServer((socket) => socket.end('wrong'))
    await until('the port is free', () => {
      if (!server.listening) server.on('error', () => {}).listen(port, '127.0.0.1')
      return server.listening
    })
    const after = await proxy.client()
    await until('it is refused', () => after.error === 'ECONNRESET')
    expect(await proxy.counts()).toMatchObject({ denied: 1 })
    before.socket.destroy()
    await new Promise((done) => server.close(done))
  })
})

describe('while the task is out', () => {
  it('a request waits and is answered in order of arrival when the task is back', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'order', await serving(world, 'order', ORDER))
    await proxy.link.ask('hold')
    const clients: TestClient[] = []
    for (let i = 0; i < 20; i++) {
      const client = await proxy.client()
      client.socket.write(`request ${i}`)
      clients.push(client)
      await expect.poll(async () => (await proxy.counts()).held, { interval: 2 }).toBe(i + 1)
    }
    expect(proxy.events).toEqual(['event wanted'])
    expect(await world.output('order')).toBe('listening\n')
    await proxy.link.ask('pass')
    for (const [i, client] of clients.entries()) await client.receives(`${i} request ${i}`)
    expect(await proxy.counts()).toMatchObject({ held: 0, refused: 0, expired: 0 })
  })

  it('an open connection keeps its bytes until the task is back, and the task can still send', async () => {
    const world = await guardWorld()
    const talk =
      'const s = require("net").createServer((c) => { setInterval(() => c.write("."), 20); ' +
      `c.on("data", (d) => console.log("got " + d)) }); ${LISTEN}`
    const proxy = await proxied(world, 'talk', await serving(world, 'talk', talk))
    const client = await proxy.client()
    client.socket.write('one')
    await expect.poll(() => world.output('talk')).toContain('got one')
    await proxy.link.ask('hold')
    const idle = await proxy.counts()
    expect(idle).toMatchObject({ isOut: true, held: 0, open: 1 })
    client.socket.write('two')
    await until('it is wanted', () => proxy.events.length === 1)
    const seen = client.size
    await until('the task sends on', () => client.size > seen + 5)
    expect(await world.output('talk')).not.toContain('two')
    expect(await proxy.counts()).toMatchObject({ held: 1 })
    await proxy.link.ask('pass')
    await expect.poll(() => world.output('talk')).toContain('got two')
    expect(await proxy.counts()).toMatchObject({ held: 0, isOut: false })
    client.socket.destroy()
  })

  it('10 MB that a client has begun to send arrive unchanged after the return', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'echo', await serving(world, 'echo', ECHO))
    const [open, late] = [await proxy.client(), randomBytes(10 * 1024 * 1024)]
    open.socket.write(late.subarray(0, 1000))
    await until('it is echoed', () => open.size === 1000)
    await proxy.link.ask('hold')
    open.socket.end(late.subarray(1000))
    const held = await proxy.client()
    held.socket.end(late)
    await expect.poll(async () => (await proxy.counts()).held).toBe(2)
    await delay(300)
    expect(open.size).toBe(1000)
    expect(held.socket.writableLength).toBeGreaterThan(1024 * 1024)
    const unread = unreadBytesAt(proxy.port)
    expect(unread).toHaveLength(2)
    for (const bytes of unread) expect(bytes).toBeLessThanOrEqual(64 * 1024)
    await proxy.link.ask('pass')
    await until('both end', () => open.isEnded && held.isEnded)
    expect(sha256(open.bytes)).toBe(sha256(late))
    expect(sha256(held.bytes)).toBe(sha256(late))
  })

  it('no byte is lost or changed, however often it leaves and returns', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'echo', await serving(world, 'echo', ECHO))
    const bytes = randomBytes(4 * 1024 * 1024)
    const clients = await Promise.all(Array.from({ length: 20 }, () => proxy.client()))
    for (const client of clients) client.socket.end(bytes)
    let swaps = 0
    for (; !clients.every((client) => client.isEnded); swaps++) {
      await proxy.link.ask(swaps % 2 === 0 ? 'hold' : 'pass')
      await delay(swaps % 2 === 0 ? 2 : 5)
    }
    expect(swaps).toBeGreaterThan(3)
    for (const client of clients) expect(sha256(client.bytes)).toBe(sha256(bytes))
    expect(await proxy.counts()).toMatchObject({ refused: 0, expired: 0, denied: 0 })
  })

  it('requests above the limit are refused: HTTP with 503, others with a reset', async () => {
    const world = await guardWorld()
    const target = await serving(world, 'echo', ECHO)
    const tcp = await proxied(world, 'echo', target, { maxHeld: 2, isOut: true })
    const clients = [await tcp.client(), await tcp.client(), await tcp.client()]
    await until('the third is refused', () => clients[2]?.error === 'ECONNRESET')
    expect(await tcp.counts()).toMatchObject({ held: 2, refused: 1 })
    await tcp.link.ask('forget')
    await until('the others end with the proxy', () =>
      clients.every((client) => client.isClosed || client.isEnded),
    )
    const http = await proxied(world, 'echo', target, { maxHeld: 1, isOut: true, protocol: 'http' })
    const first = await http.client()
    first.socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await expect.poll(async () => (await http.counts()).held).toBe(1)
    const answer = await fetch(`http://127.0.0.1:${http.port}/large`, {
      method: 'POST',
      body: 'x'.repeat(500_000),
    })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('5')
    expect(await answer.text()).toBe('The task cannot answer now. Try again.\n')
    expect(await http.counts()).toMatchObject({ held: 1, refused: 1 })
    first.socket.destroy()
  })

  it('a request that has waited for too long ends, without any server', async () => {
    const world = await guardWorld()
    const target = await serving(world, 'echo', ECHO)
    const proxy = await proxied(world, 'echo', target, { holdMs: 300, protocol: 'http' })
    const open = await proxy.client()
    open.socket.write('one')
    await open.receives('one')
    await proxy.link.ask('hold')
    proxy.link.close()
    open.socket.write('two')
    const answer = await fetch(`http://127.0.0.1:${proxy.port}/`)
    expect(answer.status).toBe(503)
    await until('the open one ends too', () => open.isClosed)
    const back = await linked(proxy.folder, proxy.port)
    await expect.poll(() => back.counts()).toMatchObject({ isOut: true, expired: 2, held: 0, open: 0 })
  })

  it('a look at an HTTP port without a request wakes nothing', async () => {
    const world = await guardWorld()
    const target = await serving(world, 'echo', ECHO)
    const proxy = await proxied(world, 'echo', target, { protocol: 'http', isOut: true })
    const look = await proxy.client()
    look.socket.end()
    await expect.poll(async () => (await proxy.counts()).open).toBe(0)
    expect(proxy.events).toEqual([])
    const request = await proxy.client()
    request.socket.write('GET')
    await until('it is wanted', () => proxy.events.length === 1)
    request.socket.destroy()
  })
})

describe('the process of a proxy', () => {
  it('outlives its server with what it holds, and ends with its task', async () => {
    const world = await guardWorld()
    const proxy = await proxied(world, 'order', await serving(world, 'order', ORDER))
    await proxy.link.ask('hold')
    const client = await proxy.client()
    client.socket.write('held')
    await until('it is wanted', () => proxy.events.length === 1)
    proxy.link.close()
    const next = await linked(proxy.folder, proxy.port)
    expect(await next.counts()).toMatchObject({
      isOut: true,
      held: 1,
      ports: [{ port: proxy.port, protocol: 'tcp' }],
    })
    await next.link.ask('pass')
    await client.receives('0 held')
    world.guards.kill('order', 1)
    await world.exitOf('order')
    await until('it has ended', () => proxiesOf(proxy.folder).length === 0)
  })

  it('refuses every other line, and drops a server that sends too much', async () => {
    const world = await guardWorld()
    await world.sh('quiet', 'exec sleep 1000')
    const proxy = await proxied(world, 'quiet', await freePort())
    for (const line of ['', 'HOLD', 'hold now', 'stat\0', 'forget me', '\u00ff\u00fe', '%n%n%s', 'hold\r'])
      await expect(proxy.link.ask(line)).rejects.toThrow(/unknown command/)
    const raw = connect(`${proxy.folder}/proxy`)
    let answer = ''
    raw.on('data', (chunk) => (answer += String(chunk))).on('error', () => {})
    raw.write('x'.repeat(100_000))
    await new Promise((done) => raw.once('close', done))
    expect(['error the line is too long\n', '']).toContain(answer)
    const many = Array.from({ length: 20 }, () => connect(`${proxy.folder}/proxy`).on('error', () => {}))
    await until(
      'those above the limit are closed',
      () => many.filter((socket) => socket.destroyed).length >= 17,
    )
    for (const socket of many) socket.destroy()
    expect(await proxy.counts()).toMatchObject({ isOut: false, accepted: 0 })
  })

  it('keeps none of root’s rights but those that it needs to look at its task', async () => {
    const world = await guardWorld()
    await world.sh('rights', 'exec sleep 1000')
    const proxy = await proxied(world, 'rights', await freePort())
    const [pid = 0] = proxiesOf(proxy.folder)
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    expect(status).toMatch(/NoNewPrivs:\t1/)
    const effective = BigInt(`0x${/CapEff:\t(\w+)/.exec(status)?.[1]}`)
    // CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN.
    expect(effective & ~((1n << 2n) | (1n << 19n) | (1n << 21n))).toBe(0n)
  })

  it.each([
    ['an address that this host does not have', { address: '192.0.2.1' }, /192\.0\.2\.1: Cannot assign/],
    ['a name instead of an address', { address: 'localhost' }, /not an IP address: localhost/],
    ['a folder without a task', { folder: '/tmp' }, /the task has ended/],
    ['a folder that is absent', { folder: '/no/such/folder' }, /No such file or directory/],
  ])('is not started with %s', async (_, options, why) => {
    const world = await guardWorld()
    await world.sh('quiet', 'exec sleep 1000')
    await expect(proxied(world, 'quiet', 8001, options)).rejects.toThrow(why)
  })

  it('says when no port of its range is free', async () => {
    const world = await guardWorld()
    await world.sh('quiet', 'exec sleep 1000')
    const taken = await listenHere()
    const ports = { from: taken, to: taken }
    await expect(proxied(world, 'quiet', 8001, { ports, next: taken })).rejects.toThrow(
      'no port of the range is free',
    )
  })
})

async function listenHere(): Promise<number> {
  const server = createServer((socket) => socket.end('wrong')).unref()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return (server.address() as AddressInfo).port
}

/** Of each connection whose local port is this one. */
function unreadBytesAt(port: number): readonly number[] {
  const local = new RegExp(
    `^ *\\d+: \\w+:${port.toString(16).toUpperCase().padStart(4, '0')} \\w+:\\w+ 01 \\w+:(\\w+) `,
    'gm',
  )
  return [...readFileSync('/proc/net/tcp', 'utf8').matchAll(local)].map(([, queue]) =>
    Number.parseInt(queue ?? '', 16),
  )
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
