/** The listener of a standby forwards requests to a leader. */
import { createServer, request as httpRequest, type Server } from 'node:http'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createStandbyState, type StandbyState } from '../../services/controller/standby-state.ts'
import { listenWhileWaiting } from '../../services/controller/waiting-listener.ts'
import type { PeerTlsFiles } from '../../services/settings/settings.ts'
import { makeCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { deadAddress } from '../support/asked.ts'

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

describe('a standby', () => {
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
  })

  async function leader(status = 201): Promise<{ readonly url: string; readonly seen: Seen[] }> {
    const seen: Seen[] = []
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { method, url, headers } = request
        seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
        if (url === '/api/v1/broken') return void request.socket.destroy()
        response.writeHead(status, { 'content-type': 'application/json', 'x-own': '1' })
        response.end('{"id":"t"}')
      })
    })
    return { url: await listening(server), seen }
  }

  async function listening(server: Server): Promise<string> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  async function standby(trustedProxies: readonly string[] = [], files: Partial<PeerTlsFiles> = {}) {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const state: StandbyState = createStandbyState({ name: 'b', url })
    const tls = { ca: null, cert: null, key: null, ...files }
    const among = { name: 'b', url, leaseMs: 2_000, mayLead: true, tls }
    const lines: string[] = []
    const listener = await listenWhileWaiting(
      { httpHost: '127.0.0.1', httpPort: port, trustedProxies, among },
      state,
      (line) => lines.push(line),
    )
    ends.push(() => listener.close())
    return { url, state, lines }
  }

  const submit = (root: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${root}/api/v1/tasks?dry_run=true`, {
      method: 'POST',
      headers: { authorization: 'Bearer s', 'content-type': 'application/json', ...headers },
      body: '{"name":"t"}',
    })

  it('forwards a request with its credentials, and says where it comes from', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    const answer = await submit(url, { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil.example' })
    expect([answer.status, await answer.json(), answer.headers.get('x-own')]).toEqual([201, { id: 't' }, '1'])
    const [{ headers, ...request } = { headers: {} }] = to.seen
    expect(request).toEqual({ method: 'POST', url: '/api/v1/tasks?dry_run=true', body: '{"name":"t"}' })
    expect(headers).toMatchObject({ authorization: 'Bearer s', host: new URL(url).host })
    // What a client claims about itself does not count.
    expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'headroom-forwarded': 'b' })
    expect(headers).not.toHaveProperty('x-forwarded-host')
  })

  it('adds the address of a proxy that is trusted to what that proxy says', async () => {
    const [to, { url, state }] = [await leader(), await standby(['127.0.0.0/8'])]
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    await submit(url, { 'x-forwarded-for': '10.1.1.1', 'x-forwarded-host': 'page.example' })
    expect(to.seen[0]?.headers).toMatchObject({
      'x-forwarded-for': '10.1.1.1, 127.0.0.1',
      'x-forwarded-host': 'page.example',
    })
  })

  it('holds a request until a controller leads', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    const answer = submit(url)
    await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(503)
    expect(to.seen).toHaveLength(0)
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    expect((await answer).status).toBe(201)
  })

  it('holds a request while the leader does not listen, and sends it to the next one', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    state.sees({ name: 'a', url: await deadAddress(), epoch: 1 })
    const answer = submit(url)
    await new Promise((resolve) => setImmediate(resolve))
    state.sees({ name: 'c', url: to.url, epoch: 2 })
    expect((await answer).status).toBe(201)
    expect(to.seen).toHaveLength(1)
  })

  it('forwards nothing that another standby has forwarded', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    const answer = await submit(url, { 'headroom-forwarded': 'c' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer.json()).toMatchObject({ code: 'no_leader' })
    expect(to.seen).toHaveLength(0)
  })

  it('sends a request again that went to a controller which does not lead any more', async () => {
    const [to, former, { url, state }] = [await leader(), await standby(), await standby()]
    former.state.sees({ name: 'c', url: to.url, epoch: 2 })
    const formerly = { name: 'a', url: former.url, epoch: 1 }
    state.sees(formerly)
    const refused = await submit(url)
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'no_leader' }])
    const answers = [submit(url, { 'idempotency-key': 'k' }), fetch(`${url}/api/v1/nodes`)]
    await new Promise((resolve) => setImmediate(resolve))
    expect(to.seen).toHaveLength(0)
    state.sees({ name: 'c', url: to.url, epoch: 2 })
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 201])
    expect(to.seen).toHaveLength(2)
  })

  it('sends a request again when another controller leads before the leader has answered', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    const received: string[] = []
    const stopped = await listening(
      createServer((request, response) => {
        received.push(String(request.headers['x-request-id']))
        if (request.url === '/api/v1/events') response.flushHeaders()
      }),
    )
    state.sees({ name: 'a', url: stopped, epoch: 1 })
    const fields = { 'idempotency-key': 'k', 'x-request-id': 'one' }
    const answers = [
      submit(url, fields),
      fetch(`${url}/api/v1/nodes`),
      submit(url),
      fetch(`${url}/api/v1/events`),
    ]
    await expect.poll(() => received.length).toBe(4)
    // Not yet: the leader may lead again.
    state.sees(null)
    state.sees({ name: 'a', url: stopped, epoch: 1 })
    state.sees({ name: 'c', url: to.url, epoch: 2 })
    const [repeated, read, unknown, begun] = await Promise.all(answers)
    expect([repeated?.status, read?.status]).toEqual([201, 201])
    expect([unknown?.status, await unknown?.json()]).toMatchObject([503, { code: 'commit_unknown' }])
    // An answer that has begun is not taken back.
    expect(begun?.status).toBe(200)
    expect(received).toHaveLength(4)
    expect(to.seen).toHaveLength(2)
  })

  it('holds a request while the next leader does not answer yet', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    state.sees({ name: 'a', url: '', epoch: 1 })
    const answer = submit(url)
    const health = await fetch(`${url}/readyz`)
    expect([health.status, await health.text()]).toEqual([
      503,
      expect.stringContaining('a is becoming the leader'),
    ])
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    expect((await answer).status).toBe(201)
  })

  it('reports a change as unknown, and a read as not done, when the leader ends meanwhile', async () => {
    const [to, { url, state }] = [await leader(), await standby()]
    state.sees({ name: 'a', url: to.url, epoch: 1 })
    const [change, read] = await Promise.all([
      fetch(`${url}/api/v1/broken`, { method: 'POST', body: 'x' }),
      fetch(`${url}/api/v1/broken`),
    ])
    expect(change.status).toBe(503)
    expect(await change.json()).toMatchObject({ code: 'commit_unknown' })
    expect(read.status).toBe(503)
    expect(await read.json()).toMatchObject({ code: 'no_leader' })
  })

  describe('with a leader at an https address', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headroom-peers-'))
    afterAll(() => rmSync(folder, { recursive: true }))
    const pems = makeCertificates(folder, 'IP:127.0.0.1')
    const others = makeCertificates(mkdtempSync(join(folder, 'other-')), 'DNS:head-1.example')
    const pem = (path: string) => readFileSync(path, 'utf8')

    async function secureLeader(at: typeof pems): Promise<string> {
      const options = { cert: pem(at.serverCert), key: pem(at.serverKey), ca: pem(pems.ca) }
      const server = createSecureServer({ ...options, requestCert: true }, (request, response) => {
        const { authorized } = request.socket as TLSSocket
        response.writeHead(200, { 'content-type': 'text/plain' })
        response.end(`${request.headers.authorization ?? ''} ${authorized}`)
      })
      return (await listening(server)).replace('http:', 'https:')
    }
    const read = (url: string, signal: AbortSignal | null = null) =>
      fetch(`${url}/api/v1/nodes`, { headers: { authorization: 'Bearer s' }, signal })

    it('forwards to it over TLS, with its own certificate', async () => {
      const [to, own] = [
        await secureLeader(pems),
        await standby([], { ca: pems.ca, cert: pems.clientCert, key: pems.clientKey }),
      ]
      own.state.sees({ name: 'a', url: to, epoch: 1 })
      expect(await (await read(own.url)).text()).toBe('Bearer s true')
    })

    it.each([
      ['another authority has signed its certificate', pems, {}, /self-signed|unable to verify/],
      ['its certificate is for another host', others, { ca: others.ca }, /127\.0\.0\.1 is not in the cert/],
    ])('sends nothing when %s, and says why once', async (_what, at, files, why) => {
      const [to, own] = [await secureLeader(at), await standby([], files)]
      own.state.sees({ name: 'a', url: to, epoch: 1 })
      const client = new AbortController()
      const answer = read(own.url, client.signal)
      const held = expect(answer).rejects.toThrow('aborted')
      await expect.poll(() => own.lines).toEqual([expect.stringMatching(why)])
      client.abort()
      await held
      expect(own.lines).toHaveLength(1)
    })

    it('does not start with files that cannot be used, and names their variables', async () => {
      await expect(standby([], { ca: join(folder, 'none') })).rejects.toThrow(
        /^CONTROLLER_PEER_CA_FILE cannot/,
      )
      const wrong = { cert: pems.clientCert, key: pems.serverKey }
      await expect(standby([], wrong)).rejects.toThrow(
        /^CONTROLLER_PEER_CERT_FILE, CONTROLLER_PEER_KEY_FILE cannot be used/,
      )
    })
  })

  it('passes bytes in both directions after an upgrade', async () => {
    const server = createServer()
    server.on('upgrade', (_request, socket, head) => {
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: headroom-channel\r\n\r\n',
      )
      socket.write(head)
      socket.pipe(socket)
    })
    const { url, state } = await standby()
    state.sees({ name: 'a', url: await listening(server), epoch: 1 })
    const echoed = await new Promise<string>((resolve, reject) => {
      const asked = httpRequest(`${url}/api/v1/channels/x`, {
        headers: { connection: 'Upgrade', upgrade: 'headroom-channel' },
      })
      asked.on('error', reject)
      asked.on('upgrade', (_answer, socket) => {
        socket.on('data', (data: Buffer) => {
          resolve(data.toString())
          socket.destroy()
        })
        socket.write('ping')
      })
      asked.end()
    })
    expect(echoed).toBe('ping')
  })

  it('answers health checks itself', async () => {
    const { url, state } = await standby()
    const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status
    expect([await statusOf('/livez'), await statusOf('/readyz')]).toEqual([200, 503])
    state.sees({ name: 'a', url: await deadAddress(), epoch: 1 })
    expect([await statusOf('/readyz'), await statusOf('/readyz?role=leader')]).toEqual([200, 503])
    expect(await (await fetch(`${url}/api/v1/readyz`)).json()).toEqual({
      status: 'ready',
      checks: [{ name: 'leader', ok: true, detail: 'standby: a leads' }],
    })
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('\nheadroom_controller_leads 0\n')
    state.sees({ name: 'b', url, epoch: 2 })
    expect(await statusOf('/readyz')).toBe(503)
  })
})
