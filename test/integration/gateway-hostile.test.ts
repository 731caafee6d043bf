/** Hostile clients of a gateway, and hostile tasks behind it. */
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, launched } from '../support/browser.ts'
import { ask, askRaw, HOST, startGatewayWorld, submit, type GatewayWorld } from '../support/gateway-world.ts'
import { until } from '../support/live-cluster.ts'

/** Says what it got, and answers with a page that tries to reach beyond its own answer. */
const EVIL = `
  const got = []
  require('node:http').createServer((request, answer) => {
    if (request.url === '/got') return void answer.end(JSON.stringify(got))
    got.push(request.method + ' ' + request.url + ' ' + request.rawHeaders.join('|'))
    answer.setHeader('Set-Cookie', ['session=evil; Domain=example.org', 'other=evil'])
    answer.setHeader('Clear-Site-Data', '"*"')
    answer.setHeader('Service-Worker-Allowed', '/')
    answer.setHeader('Content-Type', request.url.startsWith('/worker') ? 'text/javascript' : 'text/html')
    answer.end('<script src="worker.js"></script><p id="page">here</p>')
  }).listen({ port: Number(process.argv[1]), host: '127.0.0.1' })`
/** What the page tries in the browser: what worked, or the name of the error. */
const ATTEMPTS = `(async () => {
  const attempts = {
    cookie: () => document.cookie,
    'set cookie': () => (document.cookie = 'session=evil; domain=example.org'),
    storage: () => JSON.stringify(localStorage),
    worker: () => navigator.serviceWorker.register('worker.js').then(() => 'registered'),
  }
  const results = { origin: String(self.origin) }
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      results[name] = 'worked: ' + (await attempt())
    } catch (error) {
      results[name] = error.name
    }
  }
  return results
})()`
const evil = (port: number): readonly string[] => [process.execPath, '-e', EVIL, String(port)]

let world: GatewayWorld
beforeAll(async () => {
  world = await startGatewayWorld('--hold', '2s')
  await submit(world, 'evil', evil, { vram_mib: 100 })
  await until('it answers', async () => (await ask(world, '/alice/evil/')).status === 200)
})
afterAll(() => world?.cluster.end())

/** All that the task has got so far. */
const got = async (): Promise<string> => (await ask(world, '/alice/evil/got')).text
const controllerPort = (): string => new URL(world.cluster.url).port

describe('a task behind a gateway', () => {
  it('is sent neither tokens nor cookies nor addresses of its clients', async () => {
    const headers = {
      ...{ cookie: 'session=SECRET-1', 'x-forwarded-for': 'SECRET-2', forwarded: 'for=SECRET-3' },
      ...{ 'x-real-ip': 'SECRET-4', 'proxy-authorization': 'SECRET-5', 'x-own': 'kept' },
      ...{ connection: 'x-listed', 'x-listed': 'SECRET-6' },
    }
    const answer = await ask(world, '/alice/evil/page', { headers })
    expect(answer.status).toBe(200)
    for (const name of ['set-cookie', 'clear-site-data', 'service-worker-allowed'])
      expect(answer.headers).not.toHaveProperty(name)
    expect(answer.headers['content-security-policy']).toContain('sandbox')
    const text = await got()
    expect(text).toContain('x-own|kept')
    expect(text).not.toContain('SECRET')
    expect(text.toLowerCase()).not.toContain('authorization')
    expect(text).not.toContain(world.token)
  })

  it('reaches nothing when it names a port that is not its own', async () => {
    const port = Number(controllerPort())
    const stranger = `require('node:net').createServer().listen(0); setInterval(() => {}, 1000)`
    const ports = [{ name: 'api', target: port, protocol: 'http' }]
    const thief = { vram_mib: 100, ports }
    await submit(world, 'thief', () => [process.execPath, '-e', stranger], thief)
    const { status, text } = await ask(world, '/alice/thief/livez')
    expect([status, text]).toEqual([503, expect.stringContaining('No task was ready within 2 s')])
  })
})

describe('a client of a gateway', () => {
  it('without a valid token is told nothing', async () => {
    const owner = await world.makeToken('alice', 'submitter')
    for (const token of ['x', owner, `${world.token.slice(0, -1)}-`, world.cluster.token ?? ''])
      expect((await ask(world, '/alice/evil/', { token })).status).toBe(401)
    const bare = await askRaw(
      world.port,
      `GET /alice/evil/ HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`,
    )
    expect(bare).toMatch(/^HTTP\/1.1 401 /)
    expect(bare.toLowerCase()).toContain('www-authenticate: bearer')
  })

  it('cannot use its token for anything else', async () => {
    const headers = { authorization: `Bearer ${world.token}` }
    for (const path of ['/tasks', '/endpoints', '/metrics', '/tokens', '/config'])
      expect((await fetch(`${world.cluster.url}/api/v1${path}`, { headers })).status).toBe(403)
    expect((await ask(world, '/bob/evil/')).status).toBe(403)
    expect((await ask(world, '/alice/nothing/')).status).toBe(404)
  })

  it('cannot reach what administers an engine, however the path is written', async () => {
    for (const path of ['sleep', 'wake_up?x', 'v1/%73leep', 'x//collective_rpc', 'sleep;a'])
      expect((await ask(world, `/alice/evil/${path}`, { method: 'POST' })).status).toBe(403)
    expect((await ask(world, '/alice/evil/v1/../sleep')).status).toBe(400)
    expect(await got()).not.toMatch(/sleep|wake_up|collective/)
  })

  it('cannot name a host or a port', async () => {
    const address = `127.0.0.1:${controllerPort()}`
    const head = (line: string, host = HOST): string =>
      `${line} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${world.token}\r\nConnection: close\r\n\r\n`
    expect(await askRaw(world.port, head(`GET http://${address}/livez`))).toMatch(/^HTTP\/1.1 404 /)
    expect(await askRaw(world.port, head(`GET /${address}/livez`))).toMatch(/^HTTP\/1.1 403 /)
    expect(await askRaw(world.port, head(`CONNECT ${address}`))).toMatch(/^HTTP\/1.1 405 /)
    expect(await askRaw(world.port, head('GET /alice/evil/', address))).toMatch(/^HTTP\/1.1 421 /)
    expect(await askRaw(world.port, head('GET /alice/evil/', 'evil.example'))).toMatch(/^HTTP\/1.1 421 /)
  })

  it('cannot hide a request in another one', async () => {
    const begin = `/alice/evil/smuggled HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer ${world.token}\r\n`
    const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
    const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`
    const both = `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`
    expect(await askRaw(world.port, `POST ${begin}${both}`)).toMatch(/^HTTP\/1.1 400 /)
    // A body with GET stays a body.
    const chunked = `Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`
    expect(await askRaw(world.port, `GET ${begin}${chunked}`)).toMatch(/^HTTP\/1.1 200 /)
    const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n'
    expect(await askRaw(world.port, `GET ${begin}${upgrade}`)).toMatch(/^HTTP\/1.1 501 /)
    expect(await got()).not.toMatch(/"GET \/hidden/)
  })
})

describe.skipIf(CHROMIUM === null)('a hostile page behind a gateway, in a browser', () => {
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    const { args = [], ...options } = launched()
    const rules = `--host-resolver-rules=MAP ${HOST} 127.0.0.1, MAP headroom.example.org 127.0.0.1`
    browser = await chromium.launch({
      ...options,
      args: [...args.filter((arg) => !arg.startsWith('--host-resolver-rules')), rules],
    })
    const context = await browser.newContext()
    // As if the controller were known under a name of the same domain, and its page signed in.
    const cookie = { name: 'session', value: 'SECRET-COOKIE', domain: '.example.org', path: '/' }
    await context.addCookies([cookie])
    page = await context.newPage()
    await page.goto(`http://127.0.0.1:${controllerPort()}/livez`)
    await page.evaluate(() => localStorage.setItem('token', 'SECRET-TOKEN'))
    // The token is with the requests for the page only, as a program would send it.
    await page.route(`http://${HOST}:${world.port}/**`, (route) =>
      route.continue({
        headers: { ...route.request().headers(), authorization: `Bearer ${world.token}` },
      }),
    )
    await page.goto(`http://${HOST}:${world.port}/alice/evil/hostile`)
  })
  afterAll(() => browser?.close())

  it('runs, and has neither cookies nor storage nor workers', async () => {
    expect(await page.textContent('#page')).toBe('here')
    const tried = await page.evaluate<Record<string, string>>(ATTEMPTS)
    expect(tried['origin']).toBe('null')
    for (const [name, result] of Object.entries(tried)) expect(result, name).not.toMatch(/^worked/)
  })

  it('reads nothing of the controller, whose cookies it would be sent', async () => {
    const read = await page.evaluate(async (port) => {
      const results: string[] = []
      for (const host of ['127.0.0.1', 'headroom.example.org', 'localhost'])
        for (const path of ['/api/v1/tasks', '/api/v1/tokens', '/metrics', '/livez'])
          results.push(
            await fetch(`http://${host}:${port}${path}`, { credentials: 'include' }).then(
              (answer) => answer.text(),
              () => 'refused',
            ),
          )
      return results
    }, controllerPort())
    expect(new Set(read)).toEqual(new Set(['refused']))
  })

  it('receives no cookie and no token from the browser', async () => {
    const text = await got()
    expect(text).toContain('GET /hostile')
    expect(text).not.toContain('SECRET')
    expect(text.toLowerCase()).not.toMatch(/cookie|authorization/)
  })
})
