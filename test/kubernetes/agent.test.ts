/** Two pods take turns on one GPU of a real control plane: the agent is a process, the kubelet a stand-in. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { OwnerReference, Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { DAEMON_SETS, type KubeApi, PODS } from '../../operator/ports/kube-api.ts'
import { freePort } from '../support/free-port.ts'
import { componentAccount, rightsOf, STACK_NAMESPACE } from '../support/kubernetes/account.ts'
import {
  agentArguments,
  callerCertificates,
  startAdmissionOn,
  startOperatorOn,
} from '../support/kubernetes/components.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { FakeKubelet } from '../support/kubernetes/fake-kubelet.ts'
import { addReadyNode } from '../support/kubernetes/nodes.ts'
import { aClusterPolicy, aPod } from '../support/kubernetes/objects.ts'
import { type RunningCommand, startHeadroom } from '../support/running-command.ts'

const WAIT = { timeout: 90_000, interval: 100 }
const INVENTORY = { gpus: [{ model: 'X', vram_mib: 24_576 }], host_swap_mib: 65_536 }

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('With an agent', () => {
  let plane: ControlPlane
  let api: KubeApi
  let kubelet: FakeKubelet
  let agent: RunningCommand
  let options: readonly string[] = []

  beforeAll(async () => {
    plane = await ControlPlane.start()
    api = plane.client()
    await startAdmissionOn(plane)
    const port = await freePort()
    const operator = await startOperatorOn(plane, port, '--probe', '2s')
    await plane.startScheduler(port, await callerCertificates(plane))
    const [, agents = ''] = await operator.says(/for agents on 127\.0\.0\.1:(\d+)/)
    kubelet = new FakeKubelet({
      ...{ api, node: 'one' },
      remove: async ({ metadata: { name = '' } }) => {
        await plane.kubectl(['delete', 'pod', name, '--grace-period=0', '--force'])
      },
    })
    await addReadyNode(api, { name: 'one' })
    options = await agentArguments(plane, {
      ...{ node: 'one', inventory: INVENTORY, cgroups: kubelet.cgroups, operatorPort: Number(agents) },
      adminPort: 0,
    })
    agent = startHeadroom(options)
    await agent.says(/Headroom agent of node one is running/)
    const policy = aClusterPolicy(100)
    await plane.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        ...{ apiVersion: 'headroom.dev/v1alpha1', kind: 'ClusterGPUPolicy', ...policy },
        spec: { ...policy.spec, idleSwapOutSeconds: 1, safetyReserveMib: 0 },
      }),
    )
  })
  afterAll(async () => {
    await kubelet.stop()
    await plane.stop()
  })

  async function addPod(name: string, ownerReferences: readonly OwnerReference[] = []): Promise<void> {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: '20Gi' })
    await api.create(PODS, { ...pod, metadata: { ...pod.metadata, name, ownerReferences } })
  }
  const isIn = (name: string, isStopped: boolean): Promise<void> =>
    vi.waitFor(async () => {
      const pod = (await api.get(PODS, { namespace: 'default', name })) as unknown as Pod
      const state = kubelet.stateOf(pod)
      if (state === null || (state === 'T') !== isStopped)
        throw new Error(`${name} is ${state}: ${JSON.stringify(pod.status)} ${agent.output()}`)
    }, WAIT)

  it('Two pods that each want the whole GPU share it at 100 %', async () => {
    kubelet.setBusy('first', true)
    kubelet.setBusy('second', true)
    await addPod('first')
    await isIn('first', false)
    await addPod('second')
    kubelet.setBusy('first', false)
    await isIn('first', true)
    await isIn('second', false)
    kubelet.setBusy('second', false)
    await isIn('second', true)
    await isIn('first', false)
    const shown = await plane.kubectl(['get', 'gn', 'one', '-o', 'yaml'])
    expect(shown).toContain('The agent reports each second')
    expect(shown).toMatch(/reason: GPUsReported[^]*uuid: one-GPU-0/)
  })

  /** As the chart makes it; no controller acts on it. */
  async function addDaemonSet(): Promise<void> {
    const labels = { 'app.kubernetes.io/name': 'headroom', 'app.kubernetes.io/component': 'agent' }
    const containers = [{ name: 'agent', image: 'x', args: options }]
    const template = { metadata: { labels }, spec: { containers } }
    const metadata = { name: 'headroom-agent', namespace: STACK_NAMESPACE }
    await api.create(DAEMON_SETS, { metadata, spec: { selector: { matchLabels: labels }, template } })
  }
  /** The part of the controller of DaemonSets: a node's agent with the new arguments. */
  async function restartAgent(): Promise<void> {
    const key = { namespace: STACK_NAMESPACE, name: 'headroom-agent' }
    const { metadata, spec } = await api.get(DAEMON_SETS, key)
    const { args } = (spec as { template: { spec: { containers: [{ args: string[] }] } } }).template.spec
      .containers[0]
    expect(args.slice(-2)).toEqual(['--release', '--stay'])
    agent.process.kill('SIGTERM')
    await agent.ended
    agent = startHeadroom(args)
    const [, port] = await agent.says(/readyz on 127\.0\.0\.1:(\d+)/)
    await vi.waitFor(
      async () => expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200),
      WAIT,
    )
    const counts = ['desiredNumberScheduled', 'currentNumberScheduled', 'updatedNumberScheduled']
    const all = [...counts, 'numberReady', 'numberAvailable'].map((name) => [name, 1] as const)
    const status = {
      observedGeneration: metadata.generation,
      numberMisscheduled: 0,
      ...Object.fromEntries(all),
    }
    await api.patch(DAEMON_SETS, key, { type: 'merge', body: { status } }, { subresource: 'status' })
  }

  it('After an uninstall no process is stopped, and no pod waits behind a gate', async () => {
    await addPod('bare')
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x', uid: 'x', controller: true }
    await addPod('owned', [owner])
    await addDaemonSet()
    const account = await componentAccount(plane, 'uninstall')
    const uninstall = (wait: string): RunningCommand =>
      startHeadroom([
        ...['operator', 'uninstall', '--kubeconfig', account, '--namespace', STACK_NAMESPACE, '--wait', wait],
      ])
    const early = uninstall('1s')
    expect(await early.ended).not.toBe(0)
    expect(early.output()).toContain('nothing was removed')
    expect(await plane.kubectl(['get', 'mutatingwebhookconfigurations', '-o', 'name'])).toContain('headroom')

    const done = uninstall('60s')
    await done.says(/agents are swapping in/)
    await restartAgent()
    expect(`${await done.ended} ${done.output()}`).toMatch(/^0 /)
    await isIn('first', false)
    await isIn('second', false)
    const names = await plane.kubectl(['get', 'pods', '-o', 'name'])
    expect(names).not.toContain('owned')
    const bare = (await api.get(PODS, { namespace: 'default', name: 'bare' })) as unknown as Pod
    expect(bare.spec.schedulingGates).toBeUndefined()
    expect(done.output()).toContain('Pod default/bare has no controller')
    // The copy that a controller makes now.
    await addPod('owned', [owner])
    const copy = (await api.get(PODS, { namespace: 'default', name: 'owned' })) as unknown as Pod
    expect(copy.spec).toMatchObject({ schedulerName: 'default-scheduler' })
    expect(rightsOf(plane, 'uninstall')).toEqual({ forbidden: [], unused: [] })
  })
})
