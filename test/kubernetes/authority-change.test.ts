/**
 * The authorities of a running release change while pods share a GPU: no pod and no connection is refused
 * (make test-kubernetes-storm). It takes 23 minutes, because replicas and kubelets get real time to learn a
 * new authority.
 */
import { X509Certificate } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { LEADER_LABEL, POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS } from '../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { count } from '../faults/fault-cluster.ts'
import { podIn, requestsOf, rightsOf, STACK_NAMESPACE } from '../support/kubernetes/account.ts'
import {
  ageCertificates,
  CLIENTS,
  SERVERS,
  servedFingerprint,
  storedTexts,
} from '../support/kubernetes/aged-certificates.ts'
import { ChartCluster } from '../support/kubernetes/chart-cluster.ts'
import { CHART } from '../support/kubernetes/chart.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aClusterPolicy, aPod } from '../support/kubernetes/objects.ts'
import { whyNoPodNetwork } from '../support/kubernetes/pod-network.ts'

const IS_ASKED = count('KUBERNETES_STORM_AUTHORITY', 0) > 0
const whyMissing = (): string | null =>
  whyNoControlPlane('helm', 'kube-scheduler', 'kube-controller-manager') ?? whyNoPodNetwork()
const WAIT = { timeout: 60_000, interval: 100 }
/** Longest change. */
const CHANGE_MS = 2_400_000
const TEST_MS = 3_000_000
const DRY_RUN_EVERY_MS = 250
const HEARD_EVERY_MS = 1_000
const LOOK_EVERY_MS = 5_000
const GUEST_EVERY_MS = 20_000
/** Two of them do not fit. */
const GPU_MIB = 24_576
const VRAM = '20Gi'
/** Characters. */
const OUTPUT_SHOWN = 6_000
/** What a component says of a connection that fails because of a certificate. */
const REFUSED = /certificate|x509|handshake|alert|EPROTO/i

describe.skipIf(!IS_ASKED || whyMissing() !== null)('The authorities of a running release', () => {
  let cluster: ChartCluster
  beforeAll(async () => {
    cluster = await ChartCluster.start([GPU_MIB])
  })
  afterAll(() => cluster?.stop())

  const addPod = (name: string, vram: string, isDryRun = false): Promise<unknown> => {
    const { metadata, spec } = aPod({ [POD_ANNOTATIONS.podVram]: vram })
    const object = { metadata: { ...metadata, name, namespace: 'default' }, spec } as Pod
    return cluster.api.create(PODS, { ...object }, { isDryRun })
  }
  const isOut = (name: string): boolean => cluster.stateOf(cluster.pod(name)) === 'T'
  const isIn = (name: string): boolean => cluster.stateOf(cluster.pod(name)) !== null && !isOut(name)

  /** It takes the place of the resident, which returns afterwards. Returns how long it has waited. */
  async function visit(name: string): Promise<DurationMs> {
    const from = performance.now()
    await addPod(name, VRAM)
    await vi.waitFor(() => expect([name, isIn(name), isOut('resident')]).toEqual([name, true, true]), WAIT)
    const waitedMs = Math.round(performance.now() - from)
    await cluster.api.delete(PODS, { namespace: 'default', name })
    await vi.waitFor(() => expect([name, isIn('resident')]).toEqual([name, true]), WAIT)
    return waitedMs
  }

  const leader = (): string =>
    cluster.pods.find(({ metadata }) => metadata.labels?.[LEADER_LABEL] === 'true')?.metadata.name ?? ''

  /** Resolves when the leader has just looked: another replica renews, and the leader learns it last. */
  async function letAnotherLookFirst(): Promise<void> {
    const looks = (): number =>
      requestsOf(cluster.plane, 'operator').filter(
        (line) => line.objectRef?.name === SERVERS[1] && line.verb === 'get' && podIn(line) === leader(),
      ).length
    const seen = looks()
    await vi.waitFor(() => expect(looks()).toBeGreaterThan(seen), { timeout: 90_000, interval: 500 })
  }

  /** What still shows or knows another certificate than those of one new authority for each server. */
  async function unchanged(since: number): Promise<readonly string[]> {
    const found: string[] = []
    const note = (isWrong: boolean, what: string): void => void (isWrong && found.push(what))
    const authorities = new Map<string, string>()
    for (const [server, component] of [
      [SERVERS[0], 'admission'],
      [SERVERS[1], 'operator'],
    ] as const) {
      const { 'ca.crt': ca = '', 'tls.crt': cert = '' } = await storedTexts(cluster.api, server)
      const [authority, own] = [new X509Certificate(ca), new X509Certificate(cert)]
      authorities.set(server, ca)
      note(ca.split('BEGIN').length !== 2, `${server} has another authority`)
      note(authority.validToDate.getTime() < since + 600 * 86_400_000, `${server} has an old authority`)
      note(!own.verify(authority.publicKey), `${server} has a certificate of another authority`)
      const hosts = cluster.stack.addressesOf(`headroom-${component}-`)
      note(hosts.length !== 2, `${component} has ${hosts.length} replicas`)
      for (const host of hosts)
        note((await servedFingerprint(host, 8443)) !== own.fingerprint256, `${host} serves another`)
    }
    for (const kind of [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS]) {
      const { webhooks } = (await cluster.api.get(kind, { name: SERVERS[0] })) as unknown as Webhooks
      for (const { name, clientConfig } of webhooks) {
        const ca = Buffer.from(clientConfig.caBundle, 'base64').toString()
        note(ca !== authorities.get(SERVERS[0]), `${name} knows another authority`)
      }
    }
    for (const client of CLIENTS) {
      const { 'ca.crt': ca = '', 'tls.crt': cert = '' } = await storedTexts(cluster.api, client)
      note(ca !== authorities.get(SERVERS[1]), `${client} knows another authority`)
      const isNew = new X509Certificate(cert).verify(new X509Certificate(ca).publicKey)
      note(!isNew, `${client} has a certificate of another authority`)
    }
    return found
  }

  it(
    'change while no pod is refused or late, every agent is heard, and no component ends',
    async ({ onTestFailed }) => {
      const { api, stack, plane } = cluster
      let before: ReadonlyMap<string, string> = new Map()
      const output = (): string =>
        [...stack.outputs].map(([name, text]) => text.slice((before.get(name) ?? '').length)).join('\n')
      onTestFailed(() => void process.stderr.write(output().slice(-OUTPUT_SHOWN)))
      await cluster.helm('install', 'first', CHART, '--wait', '--timeout', '120s')
      // The next one looks at its certificates at another second of the minute than the leader.
      const follower = stack.runningPods.find(
        (name) => name.startsWith('headroom-operator-') && name !== leader(),
      )
      await api.delete(PODS, { namespace: STACK_NAMESPACE, name: follower ?? '' })
      const kind = { apiVersion: 'headroom.dev/v1alpha1', kind: 'ClusterGPUPolicy' }
      const spec = { ...aClusterPolicy(100).spec, idleSwapOutSeconds: 1 }
      await plane.apply([{ ...kind, ...aClusterPolicy(100), spec }])
      await vi.waitFor(() => addPod('probe', '1Gi', true), WAIT)
      await addPod('resident', VRAM)
      await vi.waitFor(() => expect(isIn('resident')).toBe(true), WAIT)
      await visit('first')

      const [agent = ''] = stack.addressesOf('headroom-agent-')
      const refusals: string[] = []
      const unheard: string[] = []
      const counts = { dryRuns: 0, guests: 0, slowestMs: 0 }
      const ending = new AbortController()
      const { signal } = ending
      const each = async (everyMs: DurationMs, turn: () => Promise<void>): Promise<void> => {
        while (!signal.aborted) {
          const next = delay(everyMs, undefined, { signal }).catch(() => {})
          await turn().catch((error: unknown) => {
            ending.abort()
            throw error
          })
          await next
        }
      }
      await letAnotherLookFirst()
      before = new Map(stack.outputs)
      const since = Date.now()
      await ageCertificates(api, { authorities: true })
      let missing: readonly string[] = []
      const turns = [
        each(DRY_RUN_EVERY_MS, async () => {
          counts.dryRuns += 1
          await addPod('tried', '1Gi', true).catch((error: unknown) => refusals.push(String(error)))
        }),
        each(HEARD_EVERY_MS, async () => {
          const text = await (await fetch(`http://${agent}:8081/metrics`)).text()
          if (!text.includes('headroom_agent_heard 1')) unheard.push(new Date().toISOString())
        }),
        each(GUEST_EVERY_MS, async () => {
          counts.slowestMs = Math.max(counts.slowestMs, await visit(`guest-${counts.guests}`))
          counts.guests += 1
        }),
        each(LOOK_EVERY_MS, async () => {
          missing = await unchanged(since)
          if (missing.length === 0 || Date.now() - since > CHANGE_MS) ending.abort()
        }),
      ]
      const faults = (await Promise.allSettled(turns)).filter(({ status }) => status === 'rejected')

      const minutes = Math.round((Date.now() - since) / 6_000) / 10
      const figures = { minutes, ...counts, refusals: refusals.length, unheard: unheard.length }
      process.stdout.write(`change of authorities ${JSON.stringify(figures)}\n`)
      const refused = output()
        .split('\n')
        .filter((line) => REFUSED.test(line))
      const { ends } = stack
      const none = { faults: [], missing: [], refusals: [], refused: [], unheard: [], ends: [] }
      expect({ faults, missing, refusals, refused, unheard, ends }).toEqual(none)
      const names = ['admission', 'operator', 'scheduler', 'agent']
      expect(names.map((name) => rightsOf(plane, name, []).forbidden)).toEqual(names.map(() => []))

      // The scheduler has run since before, and connects to another operator.
      await api.delete(PODS, { namespace: STACK_NAMESPACE, name: leader() })
      await visit('last')
      expect(stack.ends).toEqual([])
    },
    TEST_MS,
  )
})

interface Webhooks {
  readonly webhooks: readonly {
    readonly name: string
    readonly clientConfig: { readonly caBundle: string }
  }[]
}
