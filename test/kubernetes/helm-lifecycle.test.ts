/**
 * The life of a release: helm installs an older chart, and its pods run with the commands, accounts, Secrets
 * and Services of its templates while pods share a GPU; certificates are renewed; helm upgrades, uninstalls
 * and installs again. The audit log says what the components asked.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS, SCHEDULER_NAME } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, type GPUNodeStatus } from '../../operator/contract/policies.ts'
import { ownResource, PODS } from '../../operator/ports/kube-api.ts'
import { requestsOf, rightsOf } from '../support/kubernetes/account.ts'
import {
  ageCertificates,
  CERTIFICATES,
  isYoung,
  servedFingerprint,
  storedCertificate,
} from '../support/kubernetes/aged-certificates.ts'
import { ChartCluster, GPU_NODE_NAME } from '../support/kubernetes/chart-cluster.ts'
import { CHART, OLDER_VERSION, olderChart, rendered } from '../support/kubernetes/chart.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aClusterPolicy, aNodePolicy, aPod } from '../support/kubernetes/objects.ts'
import { whyNoPodNetwork } from '../support/kubernetes/pod-network.ts'

const MISSING = whyNoControlPlane('helm', 'kube-scheduler', 'kube-controller-manager') ?? whyNoPodNetwork()
const WAIT = { timeout: 90_000, interval: 100 }
const TEST_MS = 240_000
const HELM_WAIT = ['--wait', '--timeout', '120s']
/** A pod that is out stays out unless something happens. */
const VALUES = ['--set', 'operator.probeSeconds=3600,uninstall.waitSeconds=60']
const NEW_FIELD = 'safetyReserveMib'
const TRY_EVERY_MS = 50
/** Characters. */
const OUTPUT_SHOWN = 6_000

describe.skipIf(MISSING !== null)('A release of the chart', () => {
  let cluster: ChartCluster
  let older = ''
  const starts = new Map<string, number | null>()
  beforeAll(async () => {
    cluster = await ChartCluster.start([24_576])
    older = olderChart(cluster.plane.folder, NEW_FIELD)
  })
  afterAll(() => cluster?.stop())
  beforeEach(({ onTestFailed }) =>
    onTestFailed(() => {
      const pods = users().map(({ metadata, spec, status }) => [metadata.name, spec.nodeName, status])
      const told = { ends: cluster.stack.ends, pods }
      const output = cluster.stack.outputOf('headroom-').slice(-OUTPUT_SHOWN)
      process.stderr.write(`${JSON.stringify(told, null, 2)}\n${output}`)
    }),
  )

  // ---- pods ----

  const template = (vram: string) => {
    const { metadata, spec } = aPod({ [POD_ANNOTATIONS.podVram]: vram })
    return { metadata: { labels: metadata.labels, annotations: metadata.annotations }, spec }
  }
  const addPod = (name: string, vram: string, isDryRun = false): Promise<unknown> => {
    const { metadata, spec } = template(vram)
    const object = { metadata: { ...metadata, name, namespace: 'default' }, spec } as Pod
    return cluster.api.create(PODS, { ...object }, { isDryRun })
  }
  async function addReplicaSet(name: string, vram: string): Promise<void> {
    const { metadata, spec } = template(vram)
    const labels = { ...metadata.labels, app: name }
    const template_ = { metadata: { ...metadata, labels }, spec }
    const selector = { matchLabels: { app: name } }
    await cluster.plane.apply([
      {
        ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name, namespace: 'default' } },
        spec: { replicas: 1, selector, template: template_ },
      },
    ])
  }
  const users = (): readonly Pod[] =>
    cluster.pods.filter(({ metadata: { namespace } }) => namespace === 'default')
  const isOut = (pod: Pod | undefined): boolean => cluster.stateOf(pod) === 'T'
  const isIn = (pod: Pod | undefined): boolean => cluster.stateOf(pod) !== null && !isOut(pod)
  const isGated = (pod: Pod | undefined): boolean => (pod?.spec.schedulingGates ?? []).length > 0
  const processes = (): Record<string, number | null> =>
    Object.fromEntries(users().map((pod) => [pod.metadata.uid ?? '', cluster.processOf(pod)]))

  async function claims(): Promise<readonly string[]> {
    const { status } = await cluster.api.get(ownResource(GPU_NODE), { name: GPU_NODE_NAME })
    return ((status ?? {}) as GPUNodeStatus).claims?.map(({ podName }) => podName) ?? []
  }

  it(
    'installs: a pod that is idle makes room for one of a ReplicaSet, and others wait',
    async () => {
      await cluster.helm('install', 'first', older, ...HELM_WAIT, ...VALUES)
      const kind = { apiVersion: 'headroom.dev/v1alpha1', kind: 'ClusterGPUPolicy' }
      const spec = { ...aClusterPolicy(100).spec, idleSwapOutSeconds: 1 }
      await cluster.plane.apply([{ ...kind, ...aClusterPolicy(100), spec }])
      await vi.waitFor(() => addPod('probe', '1Gi', true), WAIT)
      await addPod('idle', '20Gi')
      await vi.waitFor(() => expect(isIn(cluster.pod('idle'))).toBe(true), WAIT)
      await addReplicaSet('owned', '20Gi')
      await vi.waitFor(() => expect(isIn(cluster.podOf('owned'))).toBe(true), WAIT)
      await vi.waitFor(() => expect(isOut(cluster.pod('idle'))).toBe(true), WAIT)
      await addReplicaSet('waiting', '20Gi')
      await addPod('bare', '20Gi')
      const why = (pod: Pod | undefined): string => JSON.stringify(pod?.status?.conditions ?? [])
      for (const pod of [() => cluster.podOf('waiting'), () => cluster.pod('bare')])
        await vi.waitFor(
          () =>
            expect([isGated(pod()), why(pod())]).toEqual([true, expect.stringContaining('WaitingForVRAM')]),
          WAIT,
        )
      for (const [uid, pid] of Object.entries(processes())) starts.set(uid, pid)
    },
    TEST_MS,
  )

  it(
    'answers a dry run of a policy with the forecast of its operator, and reports policies',
    async () => {
      await vi.waitFor(async () => {
        const warnings: string[] = []
        const onWarning = (text: string): unknown => warnings.push(text)
        const policies = ownResource(CLUSTER_GPU_POLICY)
        const key = { name: 'default' }
        const patch = { type: 'merge', body: aClusterPolicy(0) as object } as const
        await cluster.api.patch(policies, key, patch, { isDryRun: true, onWarning })
        const told = warnings.join('\n')
        expect(told).toContain('forecast: ')
        expect(told).not.toContain('were not simulated')
      }, WAIT)
      const kind = { apiVersion: 'headroom.dev/v1alpha1', kind: 'VendorNodePolicy' }
      await cluster.plane.apply([{ ...kind, ...aNodePolicy(GPU_NODE_NAME, 100) }])
      await vi.waitFor(async () => {
        expect(await cluster.plane.kubectl(['get', 'vnp'])).toMatch(/True/)
        expect(await cluster.plane.kubectl(['get', 'cgp'])).toMatch(/True/)
      }, WAIT)
    },
    TEST_MS,
  )

  it(
    'renews its certificates while it runs, and is not interrupted',
    async () => {
      const { api, stack } = cluster
      await ageCertificates(api)
      await vi.waitFor(
        async () => {
          for (const name of CERTIFICATES) expect([name, await isYoung(api, name)]).toEqual([name, true])
          for (const name of ['admission', 'operator']) {
            const secret = name === 'operator' ? 'headroom-extender' : 'headroom-admission'
            const { fingerprint256 } = await storedCertificate(api, secret)
            const hosts = stack.addressesOf(`headroom-${name}-`)
            expect(hosts).toHaveLength(2)
            for (const host of hosts) expect(await servedFingerprint(host, 8443)).toBe(fingerprint256)
          }
        },
        { timeout: 150_000, interval: 500 },
      )
      await addPod('small', '1Gi')
      await vi.waitFor(() => expect(isIn(cluster.pod('small'))).toBe(true), WAIT)
      const [agent = ''] = stack.addressesOf('headroom-agent-')
      expect(await (await fetch(`http://${agent}:8081/metrics`)).text()).toContain('headroom_agent_heard 1')
      expect(stack.ends).toEqual([])
    },
    TEST_MS,
  )

  it(
    'upgrades while pods run: none restarts, waits less or is refused, and the resources are new',
    async () => {
      const crd = () => cluster.plane.kubectl(['get', 'crd', 'clustergpupolicies.headroom.dev', '-o', 'yaml'])
      expect(await crd()).not.toContain(`${NEW_FIELD}:`)
      const images = (): string =>
        cluster.pods.map(({ spec }) => spec.containers.map(({ image }) => image).join()).join()
      expect(images()).toContain(OLDER_VERSION)
      const refusals: string[] = []
      let isDone = false
      const trying = (async () => {
        for (; !isDone; await delay(TRY_EVERY_MS))
          await addPod('tried', '1Gi', true).catch((error: unknown) => refusals.push(String(error)))
      })()
      await cluster.helm('upgrade', 'first', CHART, ...HELM_WAIT, ...VALUES)
      isDone = true
      await trying
      expect(refusals).toEqual([])
      await vi.waitFor(() => expect(images()).not.toContain(OLDER_VERSION), WAIT)
      expect(await crd()).toContain(`${NEW_FIELD}:`)
      expect([isOut(cluster.pod('idle')), isIn(cluster.podOf('owned'))]).toEqual([true, true])
      expect([cluster.podOf('waiting'), cluster.pod('bare')].map(isGated)).toEqual([true, true])
      expect(processes()).toMatchObject(Object.fromEntries(starts))
      await addPod('later', '1Gi')
      await vi.waitFor(() => expect(isIn(cluster.pod('later'))).toBe(true), WAIT)
      expect(cluster.stack.ends).toEqual([])
    },
    TEST_MS,
  )

  it(
    'leaves nothing stopped, gated or installed but its resources when it is uninstalled',
    async () => {
      for (const [uid, pid] of Object.entries(processes())) starts.set(uid, pid)
      const gated = cluster.podOf('waiting')
      await cluster.helm('uninstall', 'first', ...HELM_WAIT)
      expect(cluster.stack.outputOf('headroom-uninstall')).toContain('Every pod is in VRAM.')
      expect(users().filter(isOut)).toEqual([])
      expect(users().filter(isGated)).toEqual([])
      const running = users().filter((pod) => pod.spec.nodeName !== undefined)
      expect(running.map(({ metadata }) => metadata.name)).toEqual(
        expect.arrayContaining(['idle', 'small', 'later']),
      )
      const { [gated?.metadata.uid ?? '']: gone, ...kept } = Object.fromEntries(starts)
      expect(gone).toBeNull()
      expect(processes()).toMatchObject(kept)
      await vi.waitFor(() => {
        const pod = cluster.podOf('waiting')
        expect(pod?.spec.schedulerName).toBe('default-scheduler')
        expect(isIn(pod)).toBe(true)
      }, WAIT)
      await vi.waitFor(async () => expect(await leftovers()).toEqual([]), WAIT)
      expect(cluster.stack.ends).toEqual([])
    },
    TEST_MS,
  )

  /** All objects with a name of the stack or in its namespace, but resources, users' pods, and what stays. */
  async function leftovers(): Promise<readonly string[]> {
    const kinds = await cluster.plane.kubectl(['api-resources', '--verbs=list', '-o', 'name'])
    const listed = kinds
      .trim()
      .split('\n')
      .filter((kind) => !/^(events|componentstatuses)\b/.test(kind))
    const text = await cluster.plane.kubectl(['get', listed.join(), '-A', '-o', 'json'])
    const { items } = JSON.parse(text) as {
      items: { kind: string; metadata: { name: string; namespace?: string } }[]
    }
    const ofNamespace = ['ServiceAccount headroom/default', 'ConfigMap headroom/kube-root-ca.crt']
    return items
      .filter(({ metadata: { name, namespace } }) => `${namespace}/${name}`.includes('headroom'))
      .map(({ kind, metadata: { name, namespace = '' } }) => `${kind} ${namespace}/${name}`)
      .filter((each) => !/^(CustomResourceDefinition|APIService) .*\.headroom\.dev$/.test(each))
      .filter((each) => each !== 'Namespace /headroom' && !ofNamespace.includes(each))
  }

  it(
    'installs again under another name, knows the pods that run, and places new ones',
    async () => {
      const notes = await cluster.helm('install', 'again', CHART, ...HELM_WAIT, ...VALUES)
      expect(notes).toContain('this release does not change them')
      await vi.waitFor(() => addPod('probe', '1Gi', true), WAIT)
      await addPod('next', '1Gi')
      await vi.waitFor(() => expect(isIn(cluster.pod('next'))).toBe(true), WAIT)
      expect(cluster.pod('next')?.spec.schedulerName).toBe(SCHEDULER_NAME)
      const names = ['idle', cluster.podOf('owned')?.metadata.name, 'small', 'later', 'next']
      await vi.waitFor(async () => expect(await claims()).toEqual(expect.arrayContaining(names)), WAIT)
      expect(cluster.stack.ends).toEqual([])
    },
    TEST_MS,
  )

  it(
    'deletes the GPUNode of a node that is gone',
    async () => {
      const kind = ownResource(GPU_NODE)
      await cluster.api.create(kind, { metadata: { name: 'gone' } })
      await vi.waitFor(
        () => expect(cluster.api.get(kind, { name: 'gone' })).rejects.toMatchObject({ code: 404 }),
        WAIT,
      )
    },
    TEST_MS,
  )

  it('was refused nothing, and used every right of its roles', () => {
    const all = rendered()
    const names = ['admission', 'operator', 'scheduler', 'uninstall']
    const found = names.map((name) => {
      const own = all.filter(
        ({ kind, metadata }) => /Role$/.test(kind) && metadata.name === `headroom-${name}`,
      )
      const rules = own.flatMap((role) => role.rules ?? [])
      expect(rules).not.toEqual([])
      return { name, ...rightsOf(cluster.plane, name, rules) }
    })
    expect(found).toEqual(names.map((name) => ({ name, forbidden: [], unused: [] })))
    expect(requestsOf(cluster.plane, 'agent')).toEqual([])
  })
})
