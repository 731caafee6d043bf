/** The client on answers that a healthy API server does not give. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KubeClient, type KubeClientOptions } from '../../../operator/adapters/kube-client.ts'
import { CONFIG_MAPS, PODS } from '../../../operator/ports/kube-api.ts'
import { makeCertificates } from '../../support/certificates.ts'

let folder = ''
let server: Server
let answer: (request: IncomingMessage, response: ServerResponse) => void
const clients: KubeClient[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-kube-client-'))
  const { serverCert, serverKey } = makeCertificates(folder, 'IP:127.0.0.1')
  server = createServer(
    { cert: readFileSync(serverCert), key: readFileSync(serverKey) },
    (request, response) => answer(request, response),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  for (const client of clients) client.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true })
})

function client(options: Partial<KubeClientOptions> = {}, ca = true): KubeClient {
  const { port } = server.address() as AddressInfo
  const made = new KubeClient(
    {
      server: `https://127.0.0.1:${port}`,
      ca: ca ? readFileSync(join(folder, 'ca.pem'), 'utf8') : undefined,
      clientCertificate: undefined,
      token: () => 'secret',
    },
    { userAgent: 'test', ...options },
  )
  clients.push(made)
  return made
}

const key = { namespace: 'a', name: 'b' }
const watching = (signal = new AbortController().signal) => ({
  resourceVersion: '1',
  timeoutMs: 60_000,
  signal,
})

it('A request carries the token, and names from outside stay one part of the path', async () => {
  let seen: IncomingMessage | undefined
  answer = (request, response) => {
    seen = request
    response.end(JSON.stringify({ metadata: { name: 'b' } }))
  }
  await client().get(PODS, { namespace: '../x', name: 'a/b?c' })
  expect(seen?.url).toBe('/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc')
  expect(seen?.headers).toMatchObject({ authorization: 'Bearer secret', 'user-agent': 'test' })
})

it('A server with a certificate of another authority gets no request', async () => {
  let requests = 0
  answer = (_request, response) => {
    requests += 1
    response.end('{}')
  }
  await expect(client({}, false).get(CONFIG_MAPS, key)).rejects.toThrow(/certificate/)
  expect(requests).toBe(0)
})

it('An answer of a proxy is an error with its code, its text and the time to wait', async () => {
  answer = (_request, response) => {
    response.writeHead(503, { 'retry-after': '7' }).end('upstream is away')
  }
  await expect(client().get(CONFIG_MAPS, key)).rejects.toMatchObject({
    code: 503,
    message: 'upstream is away',
    retryAfterMs: 7_000,
  })
})

it('An answer and a line of a watch have a maximum size', async () => {
  answer = (_request, response) => response.end('x'.repeat(2_000))
  await expect(client({ maxAnswerBytes: 1_000 }).get(CONFIG_MAPS, key)).rejects.toThrow(
    'more than 1000 bytes',
  )
  const watch = client({ maxAnswerBytes: 1_000 }).watch(CONFIG_MAPS, watching())
  await expect(watch.next()).rejects.toThrow('more than 1000 bytes')
})

it('A server that does not answer is given up after the timeout', async () => {
  answer = () => {}
  await expect(client({ requestTimeoutMs: 50 }).get(CONFIG_MAPS, key)).rejects.toThrow('sent nothing')
})

it('A watch that is silent ends with an error, and one whose events arrive in parts does not', async () => {
  answer = (_request, response) => {
    const text = JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'é' } } })
    const bytes = Buffer.from(`${text}\n{"type":`)
    const cut = bytes.indexOf(0xc3) + 1
    response.write(bytes.subarray(0, cut))
    setImmediate(() => response.write(bytes.subarray(cut)))
  }
  const watch = client({ watchGraceMs: 200 }).watch(CONFIG_MAPS, { ...watching(), timeoutMs: 0 })
  expect((await watch.next()).value).toMatchObject({ object: { metadata: { name: 'é' } } })
  await expect(watch.next()).rejects.toThrow('sent nothing for 0.2 s')
})

it('A watch that is aborted ends without an error', async () => {
  answer = (_request, response) => response.writeHead(200).flushHeaders()
  const stop = new AbortController()
  const watch = client().watch(CONFIG_MAPS, watching(stop.signal))
  const next = watch.next()
  stop.abort()
  expect(await next).toEqual({ done: true, value: undefined })
})

it('A connection that breaks in a watch is an error', async () => {
  answer = (_request, response) => {
    response.writeHead(200).flushHeaders()
    response.write('\n')
    setImmediate(() => response.destroy())
  }
  await expect(client().watch(CONFIG_MAPS, watching()).next()).rejects.toThrow()
})
