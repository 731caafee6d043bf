/** `headroom operator admission` on an API server in memory: certificates, health, metrics, the end. */
import { request } from 'node:https'
import { X509Certificate } from 'node:crypto'
import { afterEach, expect, it, vi } from 'vitest'
import { textOf } from '../../../operator/adapters/answer-bytes.ts'
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { webhookConfigurations } from '../../../operator/admission/webhook-configurations.ts'
import type { MemoryApi } from '../../../operator/memory-api/memory-api.ts'
import {
  CONFLICT,
  KubeError,
  type KubeObject,
  MUTATING_WEBHOOKS,
  SECRETS,
  VALIDATING_WEBHOOKS,
} from '../../../operator/ports/kube-api.ts'
import { type RunningAdmission, startAdmissionProcess } from '../../../services/operator/admission.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { aPod } from '../../support/kubernetes/objects.ts'
import { WAIT } from '../../support/wait.ts'

const NAME = 'headroom-admission'
const DAY = 86_400_000
let now = Date.now()
const ended: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
  now = Date.now()
})

async function installed(): Promise<MemoryApi> {
  const api = memoryApi()
  await api.create(SECRETS, { metadata: { namespace: 'gpu', name: NAME } })
  const place = { service: { namespace: 'gpu', name: NAME, port: 443 } }
  for (const configuration of webhookConfigurations(place, null))
    await api.create(
      configuration.kind === MUTATING_WEBHOOKS.kind ? MUTATING_WEBHOOKS : VALIDATING_WEBHOOKS,
      configuration as unknown as KubeObject,
    )
  return api
}

function started(api: MemoryApi, notes: string[] = []) {
  const stop = new AbortController()
  const running = startAdmissionProcess({
    ...{ api, admission: DEFAULT_ADMISSION, namespace: 'gpu', secret: NAME, service: NAME },
    ...{ configuration: NAME, dnsNames: ['localhost'], signal: stop.signal },
    forecast: () => Promise.resolve([]),
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    onNote: (line) => notes.push(line),
    now: () => now,
    ...{ lookEveryMs: 20, servesOnMs: 0 },
  })
  ended.push(async () => {
    stop.abort()
    await (await running)?.stop()
  })
  return { stop, running: running as Promise<RunningAdmission> }
}

async function bundleOf(api: MemoryApi): Promise<string> {
  const bundles = new Set<string>()
  for (const kind of [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS]) {
    const { webhooks } = (await api.get(kind, { name: NAME })) as unknown as {
      webhooks: { clientConfig: { caBundle: string } }[]
    }
    for (const { clientConfig } of webhooks) bundles.add(clientConfig.caBundle)
  }
  expect(bundles.size).toBe(1)
  return Buffer.from([...bundles][0]!, 'base64').toString()
}

/** As the API server calls: it trusts the bundle of the configuration and nothing else. */
async function review(port: number, ca: string) {
  const body = JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', operation: 'CREATE', kind: { kind: 'Pod' }, object: aPod() },
  })
  return new Promise<{ readonly serial: string; readonly text: string }>((resolve, reject) => {
    const url = `https://localhost:${port}/mutate-pods`
    const sent = request(url, { method: 'POST', ca, agent: false, family: 4 }, (answer) => {
      const { serialNumber: serial } = (
        answer.socket as unknown as { getPeerCertificate(): { serialNumber: string } }
      ).getPeerCertificate()
      textOf(answer, 100_000).then((text) => resolve({ serial, text }), reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const admin = async ({ adminPort }: RunningAdmission, path: string) => {
  const answer = await fetch(`http://127.0.0.1:${adminPort}${path}`)
  return { status: answer.status, text: await answer.text() }
}

it('The API server trusts what the process serves, and reads metrics of it', async () => {
  const api = await installed()
  const running = await started(api).running
  const { text } = await review(running.port, await bundleOf(api))
  expect(JSON.parse(text)).toMatchObject({ response: { allowed: true, patchType: 'JSONPatch' } })
  expect((await admin(running, '/readyz')).status).toBe(200)
  const metrics = (await admin(running, '/metrics')).text
  expect(metrics).toContain('headroom_admission_reviews_total{webhook="mutate-pods",outcome="allowed"} 1')
  expect(metrics).toMatch(/headroom_admission_certificate_expires_in_seconds 77\d{5}\n/)
})

it('Two replicas share one certificate, also when both create it at once', async () => {
  const api = await installed()
  const [one, two] = await Promise.all([started(api).running, started(api).running])
  const bundle = await bundleOf(api)
  expect((await review(one.port, bundle)).serial).toBe((await review(two.port, bundle)).serial)
})

it('A replica that loses the race for the Secret serves what the winner wrote', async () => {
  const api = await installed()
  const replace = api.replace.bind(api)
  const lost = vi.spyOn(api, 'replace').mockImplementationOnce(async (kind, object) => {
    await replace(kind, { ...object, data: { other: '' } })
    throw new KubeError(CONFLICT, 'Conflict', 'the object has been modified')
  })
  const running = await started(api).running
  expect(lost).toHaveBeenCalledTimes(2)
  expect((await review(running.port, await bundleOf(api))).text).toContain('"allowed":true')
})

it('A certificate that is due is renewed without a restart, and the API server trusts both', async () => {
  now -= 61 * DAY
  const api = await installed()
  const running = await started(api).running
  const before = await review(running.port, await bundleOf(api))
  now += 61 * DAY
  await vi.waitFor(async () => {
    const after = await review(running.port, await bundleOf(api))
    expect(after.serial).not.toBe(before.serial)
  }, WAIT)
})

it('Without the Secret it waits, says who makes it, and is not ready', async () => {
  const api = memoryApi()
  const notes: string[] = []
  const { stop, running } = started(api, notes)
  await vi.waitFor(() => expect(notes).toHaveLength(1), WAIT)
  expect(notes[0]).toBe(
    'the certificates cannot be stored: Secret headroom-admission not found in namespace gpu. ' +
      'The Helm chart creates it.',
  )
  stop.abort()
  expect(await running).toBeNull()
})

it('A damaged Secret is written again', async () => {
  const api = await installed()
  const running = await started(api).running
  const key = { namespace: 'gpu', name: NAME }
  const body = { data: { 'ca.key': Buffer.from('x').toString('base64') } }
  await api.patch(SECRETS, key, { type: 'merge', body })
  await vi.waitFor(async () => {
    const { data } = (await api.get(SECRETS, key)) as unknown as { data: Record<string, string> }
    const served = new X509Certificate(Buffer.from(data['tls.crt']!, 'base64'))
    const { serial } = await review(running.port, await bundleOf(api))
    expect(serial).toBe(served.serialNumber)
    expect(data['ca.key']).not.toBe('eA==')
  }, WAIT)
})
