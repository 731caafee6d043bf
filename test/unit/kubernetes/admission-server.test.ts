/** The webhooks over HTTPS, with an API server in memory. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AdmissionServer } from '../../../operator/adapters/admission-server.ts'
import { textOf } from '../../../operator/adapters/answer-bytes.ts'
import { NODE_LABELS } from '../../../operator/contract/names.ts'
import { VENDOR_NODE_POLICY } from '../../../operator/contract/policies.ts'
import { KubeError, NODES, ownResource } from '../../../operator/ports/kube-api.ts'
import { makeCertificates } from '../../support/certificates.ts'
import { startAdmission } from '../../support/kubernetes/admission.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { aNodePolicy, aPod } from '../../support/kubernetes/objects.ts'

const api = memoryApi()
const log: string[] = []
let folder = ''
let server: AdmissionServer
const text = (name: string): string => readFileSync(join(folder, name), 'utf8')

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-admission-'))
  makeCertificates(folder, 'IP:127.0.0.1')
  server = await startAdmission(folder, api, (line) => log.push(line))
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

async function call(method: string, path: string, body?: string) {
  const url = `https://127.0.0.1:${server.port}${path}`
  return new Promise<{ readonly code: number | undefined; readonly text: string; readonly serial: string }>(
    (resolve, reject) => {
      const sent = request(url, { method, ca: text('ca.pem'), agent: false }, (answer) => {
        const { serialNumber } = (answer.socket as TLSSocket).getPeerCertificate()
        const { statusCode: code } = answer
        textOf(answer, 1_000_000).then((body) => resolve({ code, text: body, serial: serialNumber }), reject)
      })
      sent.on('error', reject)
      sent.end(body)
    },
  )
}

const review = (kind: string, object: object) =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u-1', operation: 'CREATE', kind: { kind }, object },
  })

it('A pod is answered with its patch, a second policy of a node with a refusal', async () => {
  const pod = await call('POST', '/mutate-pods?timeout=5s', review('Pod', aPod()))
  expect(pod.code).toBe(200)
  expect(JSON.parse(pod.text)).toMatchObject({
    kind: 'AdmissionReview',
    response: { uid: 'u-1', allowed: true, patchType: 'JSONPatch' },
  })
  await api.create(ownResource(VENDOR_NODE_POLICY), { ...aNodePolicy('first', 10, 'gpu-1') })
  const policy = review('VendorNodePolicy', aNodePolicy('second', 20, 'gpu-1'))
  expect(JSON.parse((await call('POST', '/validate-policies', policy)).text)).toMatchObject({
    response: { allowed: false, status: { code: 422 } },
  })
})

it('The pod of an agent gets the percentage of its node, or none without an answer', async () => {
  await api.create(NODES, { metadata: { name: 'gpu-9', labels: { [NODE_LABELS.overcommitPercent]: '70' } } })
  const agentOn = (...values: readonly string[]) => {
    const pin = { matchFields: [{ key: 'metadata.name', operator: 'In', values }] }
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [pin] } }
    const pod = aPod()
    return review('Pod', { ...pod, spec: { ...pod.spec, affinity: { nodeAffinity: required } } })
  }
  const changesOf = async (body: string): Promise<string> => {
    const { response } = JSON.parse((await call('POST', '/mutate-agents', body)).text) as {
      response: { allowed: boolean; patch?: string }
    }
    expect(response.allowed).toBe(true)
    return Buffer.from(response.patch ?? '', 'base64').toString()
  }
  expect(await changesOf(agentOn('gpu-9'))).toContain(
    '"env":[{"name":"VENDOR_VRAM_OVERCOMMIT_PERCENT","value":"70"}]',
  )
  for (const body of [review('Pod', aPod()), agentOn(), agentOn('gpu-9', 'gpu-8'), agentOn('unknown')])
    expect(await changesOf(body)).toBe('')
  api.failNext(new KubeError(503, 'ServiceUnavailable', 'away'))
  expect(await changesOf(agentOn('gpu-9'))).toBe('')
})

it('Other paths, methods and documents are refused', async () => {
  expect((await call('GET', '/readyz')).code).toBe(200)
  expect((await call('GET', '/mutate-pods')).code).toBe(404)
  expect((await call('POST', '/other', '{}')).code).toBe(404)
  expect((await call('POST', '/constructor', '{}')).code).toBe(404)
  expect((await call('POST', '/mutate-pods', '{}')).code).toBe(400)
  expect((await call('POST', '/mutate-pods', '{')).code).toBe(400)
})

it('A review that is too large is refused', async () => {
  const large = review('Pod', { padding: 'x'.repeat(5_000_000) })
  const refused = await call('POST', '/mutate-pods', large).then(
    ({ code }) => code,
    (error: NodeJS.ErrnoException) => error.code,
  )
  // The server closes while the client still writes.
  expect([413, 'EPIPE', 'ECONNRESET']).toContain(refused)
  expect(log.at(-1)).toBe('/mutate-pods answered 413: AnswerTooLarge')
})

it('Without the API server a policy gets no answer: the failure policy decides', async () => {
  api.failNext(new KubeError(503, 'ServiceUnavailable', 'a secret of the server'))
  const policy = review('VendorNodePolicy', aNodePolicy('third', 20, 'gpu-3'))
  expect((await call('POST', '/validate-policies', policy)).code).toBe(500)
  expect(log.at(-1)).toBe('/validate-policies answered 500: KubeError')
})

it('A renewed certificate is that of the next connection', async () => {
  const before = (await call('GET', '/readyz')).serial
  makeCertificates(folder, 'IP:127.0.0.1')
  server.renew({ cert: text('server.pem'), key: text('server.key') })
  expect((await call('GET', '/readyz')).serial).not.toBe(before)
})

it('A server that ends answers, and sends its callers elsewhere, until its time is over', async () => {
  const ending = await startAdmission(folder, api)
  const agent = new Agent({ keepAlive: true, ca: text('ca.pem') })
  const connection = (): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request(`https://127.0.0.1:${ending.port}/readyz`, { agent }, (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.headers.connection))
      })
      sent.on('error', reject)
      sent.end()
    })
  const { port } = ending
  expect(await connection()).toBe('keep-alive')
  let isOver = (): void => {}
  const closed = ending.close(new Promise<void>((resolve) => (isOver = resolve)))
  expect(await connection()).toBe('close')
  expect(await connection()).toBe('close')
  isOver()
  await closed
  agent.destroy()
  await expect(fetch(`https://127.0.0.1:${port}/readyz`)).rejects.toMatchObject({
    // A connection of an earlier request is reset.
    cause: { code: expect.stringMatching(/^ECONN(REFUSED|RESET)$/) },
  })
})
