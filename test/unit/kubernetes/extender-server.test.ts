/** The extender over HTTPS: requests as the scheduler of Kubernetes sends them, and those of admission. */
import { once } from 'node:events'
import { connect } from 'node:http2'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'node:https'
import { Duplex } from 'node:stream'
import { connect as tlsConnect } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { textOf } from '../../../operator/adapters/answer-bytes.ts'
import type { CallerServer } from '../../../operator/adapters/caller-server.ts'
import {
  type Extender,
  type ExtenderServerOptions,
  startExtenderServer,
} from '../../../operator/adapters/extender-server.ts'
import { askedForecast } from '../../../operator/adapters/forecast-client.ts'
import { renewedCertificates, renewedClient } from '../../../operator/adapters/own-certificates.ts'
import { aClusterPolicy } from '../../support/kubernetes/objects.ts'

const own = renewedCertificates(null, 'headroom-extender', ['localhost'], Date.now())
const admission = renewedClient(null, 'headroom-admission', own, Date.now())
const scheduler = renewedClient(null, 'headroom-scheduler', own, Date.now())
const other = renewedClient(null, 'another-client', own, Date.now())
const stranger = renewedCertificates(null, 'stranger', ['localhost'], Date.now())

/** Of HTTP/2. */
const DATA = 0
const END_STREAM = 1
const asked: unknown[] = []
const leading: Extender = {
  filter: (uid, names) => {
    asked.push([uid, names])
    return { nodeNames: names.slice(0, 1), failed: { b: 'VRAM is reserved on a' } }
  },
  bind: (uid, node) => Promise.resolve(uid === 'good' ? null : `no VRAM for ${uid} on ${node}`),
}
let extender: Extender | null = leading
type ForecastOf = ExtenderServerOptions['forecast']
let forecast: ForecastOf = ({ kind }) => Promise.resolve([`forecast of a ${kind}`])
let server: CallerServer
beforeAll(async () => {
  server = await startExtenderServer({
    ...{ host: '127.0.0.1', port: 0, cert: own.cert, key: own.key, ca: own.authorities },
    ...{ extender: () => extender, forecast: (policy) => forecast(policy), log: () => {} },
  })
})
afterAll(() => server.close())

function call(
  path: string,
  body: string,
  client: { readonly cert: string; readonly key: string } | null = scheduler,
) {
  return new Promise<{ readonly code: number | undefined; readonly text: string }>((resolve, reject) => {
    const identity = client === null ? {} : { cert: client.cert, key: client.key }
    const how = { method: 'POST', ca: own.authorities, agent: false as const, family: 4, ...identity }
    const sent = request(`https://localhost:${server.port}${path}`, how, (answer) => {
      textOf(answer, 100_000).then((text) => resolve({ code: answer.statusCode, text }), reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

it('A filter is answered with the nodes, and why not the others', async () => {
  const pod = { metadata: { name: 'p', uid: 'u' }, spec: {} }
  const body = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: ['a', 'b'] })
  const { code, text } = await call('/filter', body)
  expect([code, JSON.parse(text)]).toEqual([
    200,
    { NodeNames: ['a'], FailedNodes: { b: 'VRAM is reserved on a' }, Error: '' },
  ])
  expect(asked).toEqual([['u', ['a', 'b']]])
})

it('A binding is answered with an empty error, or with the reason', async () => {
  const bind = (PodUID: string) =>
    call('/bind', JSON.stringify({ PodName: 'p', PodNamespace: 'd', PodUID, Node: 'a' }))
  expect(JSON.parse((await bind('good')).text)).toEqual({ Error: '' })
  expect(JSON.parse((await bind('bad')).text)).toEqual({ Error: 'no VRAM for bad on a' })
})

it('A caller with HTTP/2 sends all requests over one connection, until another operator leads', async () => {
  const identity = { ca: own.authorities, cert: scheduler.cert, key: scheduler.key }
  const session = connect(`https://localhost:${server.port}`, identity)
  const closed = once(session, 'close')
  const ask = async (path: string, body: string) => {
    const stream = session.request({ ':method': 'POST', ':path': path })
    stream.end(body)
    const [headers] = (await once(stream, 'response')) as [{ readonly ':status': number }]
    return { code: headers[':status'], text: await textOf(stream, 100_000) }
  }
  const bind = JSON.stringify({ PodUID: 'good', Node: 'a' })
  const names = Array.from({ length: 10_000 }, (_, index) => `node-with-a-long-name-${index}`)
  const filter = JSON.stringify({ Pod: { metadata: { uid: 'u' } }, NodeNames: names })
  const answers = await Promise.all([ask('/bind', bind), ask('/filter', filter), ask('/nothing', '{}')])
  expect(answers.map(({ code }) => code)).toEqual([200, 200, 404])
  expect(JSON.parse(answers[1].text)).toMatchObject({ NodeNames: [names[0]] })
  expect(session.closed).toBe(false)
  extender = null
  try {
    expect(await ask('/bind', bind)).toEqual({ code: 503, text: 'another operator leads' })
    await closed
  } finally {
    extender = leading
  }
})

it('The end of a stream comes with the last byte of its answer', async () => {
  const identity = { ca: own.authorities, cert: scheduler.cert, key: scheduler.key }
  const socket = tlsConnect({ host: 'localhost', port: server.port, ALPNProtocols: ['h2'], ...identity })
  await once(socket, 'secureConnect')
  const received: Buffer[] = []
  const seen = new Duplex({ read: () => {}, write: (chunk, _, done) => void socket.write(chunk, done) })
  socket.on('data', (chunk: Buffer) => {
    received.push(chunk)
    seen.push(chunk)
  })
  const session = connect(`https://localhost:${server.port}`, { createConnection: () => seen })
  const stream = session.request({ ':method': 'POST', ':path': '/bind' })
  stream.end(JSON.stringify({ PodUID: 'good', Node: 'a' }))
  const text = await textOf(stream, 1_000)
  const ofAnswer = framesOf(Buffer.concat(received)).filter(({ type }) => type === DATA)
  expect(ofAnswer).toEqual([{ type: DATA, length: text.length, flags: END_STREAM }])
  session.destroy()
  socket.destroy()
})

/** RFC 9113, section 4.1. */
function framesOf(bytes: Buffer): readonly { type: number; length: number; flags: number }[] {
  const frames = []
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
    frames.push({ type: bytes[at + 3]!, length: bytes.readUIntBE(at, 3), flags: bytes[at + 4]! })
  return frames
}

it('Only the scheduler may ask', async () => {
  expect((await call('/filter', '{}', other)).code).toBe(403)
  await expect(call('/filter', '{}', stranger)).rejects.toThrow()
  await expect(call('/filter', '{}', null)).rejects.toThrow()
})

it('Admission asks for forecasts and nothing else, and the scheduler asks for none', async () => {
  const body = JSON.stringify({ kind: 'ClusterGPUPolicy', policy: aClusterPolicy(40) })
  const { code, text } = await call('/forecast', body, admission)
  expect([code, JSON.parse(text)]).toEqual([200, { lines: ['forecast of a ClusterGPUPolicy'] }])
  expect((await call('/bind', '{}', admission)).code).toBe(404)
  expect((await call('/filter', '{}', admission)).code).toBe(404)
  expect((await call('/forecast', body)).code).toBe(404)
  expect((await call('/forecast', body, other)).code).toBe(403)
  for (const wrong of [aClusterPolicy(1001), null, { metadata: {} }]) {
    const malformed = JSON.stringify({ kind: 'ClusterGPUPolicy', policy: wrong })
    expect((await call('/forecast', malformed, admission)).code).toBe(400)
  }
  const unknown = JSON.stringify({ kind: 'Pod', policy: aClusterPolicy(40) })
  expect((await call('/forecast', unknown, admission)).code).toBe(400)
})

it('The line of admission says whether the operator answered', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-forecast-'))
  const policy = { kind: 'ClusterGPUPolicy', policy: aClusterPolicy(40) }
  const log: string[] = []
  const to = { host: 'localhost', port: server.port, certificates: folder }
  const ask = (withinMs?: number) =>
    askedForecast(
      { ...to, log: (line) => log.push(line), ...(withinMs === undefined ? {} : { withinMs }) },
      policy,
    )
  const silent = ['forecast: waiting times were not simulated, because the operator did not answer.']
  try {
    expect(await ask()).toEqual(silent)
    expect(log).toEqual([expect.stringContaining('ENOENT')])
    const files = { 'ca.crt': own.authorities, 'tls.crt': admission.cert, 'tls.key': admission.key }
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
    expect(await ask()).toEqual(['forecast of a ClusterGPUPolicy'])
    forecast = () => null
    expect(await ask()).toEqual(silent)
    expect(log.at(-1)).toContain('503: another operator leads')
    const never = Promise.withResolvers<readonly string[]>()
    forecast = () => never.promise
    expect(await ask(50)).toEqual(silent)
    never.resolve([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('Other paths and documents are refused', async () => {
  expect((await call('/prioritize', '{}')).code).toBe(404)
  expect((await call('/filter', '{')).code).toBe(400)
  expect(JSON.parse((await call('/filter', '{"Pod": {}}')).text)).toEqual({
    Error: 'Pod or NodeNames is missing',
  })
  expect(JSON.parse((await call('/bind', 'null')).text)).toEqual({ Error: 'PodUID or Node is missing' })
})

it('A replica that does not lead says so', async () => {
  extender = null
  expect(await call('/filter', '{}')).toEqual({ code: 503, text: 'another operator leads' })
  extender = leading
})

it('A caller that has connected and asks nothing does not keep the server open', async () => {
  const closing = await startExtenderServer({
    ...{ host: '127.0.0.1', port: 0, cert: own.cert, key: own.key, ca: own.authorities },
    ...{ extender: () => null, forecast: () => null, log: () => {} },
  })
  const identity = { ca: own.authorities, cert: scheduler.cert, key: scheduler.key }
  const waiting = ['h2', 'http/1.1'].map((protocol) =>
    tlsConnect({ host: 'localhost', port: closing.port, ALPNProtocols: [protocol], ...identity }),
  )
  const ends = waiting.map((caller) => once(caller, 'close'))
  await Promise.all(waiting.map((caller) => once(caller, 'secureConnect')))
  await closing.close()
  await Promise.all(ends)
})
