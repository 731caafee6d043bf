/** The operator over an API server in memory: pods get GPUs, wait with a reason, and survive its restart. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSystemClock } from '../../../controller/adapters/system-clock.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import {
  ADMITTED_CONDITION,
  GROUP_LABEL,
  NODE_LABELS,
  POD_ANNOTATIONS,
} from '../../../operator/contract/names.ts'
import {
  type Claim,
  CLUSTER_GPU_POLICY,
  GPU_NODE,
  type GPUNodeStatus,
  VENDOR_NODE_POLICY,
} from '../../../operator/contract/policies.ts'
import { type KubeApi, NODES, ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { AgentLinks } from '../../../operator/placing/agent-links.ts'
import { agentsHeard } from '../../../services/operator/heard-agents.ts'
import { Pause } from '../../../simulator/kernel/pause.ts'
import { ProcessClock } from '../../../simulator/kernel/process-clock.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { delegating, OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { aClusterPolicy, aNodePolicy, aPod } from '../../support/kubernetes/objects.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

const bound = (name: string): Promise<Pod> =>
  vi.waitFor(async () => {
    const pod = await world.pod(name)
    if (pod.spec.nodeName === undefined) throw new Error(`${name} is not bound: ${world.notes.join('\n')}`)
    return pod
  }, WAIT)
const conditionOf = ({ status }: Pod) => status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
const reason = (name: string, wanted: string): Promise<string> =>
  vi.waitFor(async () => {
    const found = conditionOf(await world.pod(name))
    if (found?.reason !== wanted)
      throw new Error(`${name}: ${JSON.stringify(found)} ${world.notes.join('\n')}`)
    return found.message ?? ''
  }, WAIT)
const gpusOf = ({ metadata }: Pod): string | undefined => metadata.annotations?.[POD_ANNOTATIONS.gpuUuids]

it('A pod gets a GPU by its binding, and the claim is in the GPUNode', async () => {
  await world.addNode('a', 24 * GIB)
  world.start()
  const { metadata } = await world.addPod('train', '8Gi')
  const pod = await bound('train')
  expect([pod.spec.nodeName, gpusOf(pod), pod.spec.schedulingGates ?? []]).toEqual(['a', 'a-GPU-0', []])
  const { claims } = await world.status('a')
  expect(claims).toEqual([
    {
      ...{ podUid: metadata.uid, podNamespace: 'default', podName: 'train' },
      ...{ gpuUuids: ['a-GPU-0'], vramMib: 8 * GIB, swappable: true },
    },
  ])
  await reason('train', 'Bound')
})

it('A pod that does not fit waits with its reason, and gets its place when another ends', async () => {
  await world.addNode('a', 24 * GIB)
  world.start()
  await world.addPod('first', '20Gi')
  await bound('first')
  await world.addPod('second', '8Gi')
  expect(await reason('second', 'WaitingForVRAM')).toMatch(/8 GiB|8,192 MiB/)
  expect((await world.pod('second')).spec.schedulingGates).toHaveLength(1)
  await world.finish('first')
  await bound('second')
  await vi.waitFor(async () => {
    const { claims = [] } = await world.status('a')
    expect(claims.map(({ podName }) => podName)).toEqual(['second'])
  }, WAIT)
})

it('A pod whose probes forbid a swap does not get overcommitted VRAM', async () => {
  await world.addNode('a', 24 * GIB)
  world.start({ helmPercent: 100 })
  const probed = (pod: Pod): Pod => {
    const [main] = pod.spec.containers
    const livenessProbe = { exec: { command: ['true'] } }
    return { ...pod, spec: { ...pod.spec, containers: [{ ...main!, livenessProbe }] } }
  }
  await world.addPod('first', '20Gi', probed)
  await bound('first')
  expect((await world.status('a')).claims).toMatchObject([{ podName: 'first', swappable: false }])
  await world.addPod('second', '20Gi', probed)
  await reason('second', 'WaitingForVRAM')
})

it('A pod with several GPUs gets them of one node', async () => {
  await world.addNode('a', 24 * GIB)
  await world.addNode('b', 24 * GIB, 24 * GIB)
  world.start()
  await world.addPod('wide', '20Gi', (pod) => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      annotations: { ...pod.metadata.annotations, [POD_ANNOTATIONS.gpuCount]: '2' },
    },
  }))
  const pod = await bound('wide')
  expect([pod.spec.nodeName, gpusOf(pod)]).toEqual(['b', 'b-GPU-0,b-GPU-1'])
})

it('An operator that starts again counts every bound pod', async () => {
  await world.addNode('a', 24 * GIB)
  const first = world.start()
  await world.addPod('first', '20Gi')
  await bound('first')
  await first.stop()
  await world.addPod('second', '8Gi')
  world.start()
  await reason('second', 'WaitingForVRAM')
  await world.addPod('small', '1Gi')
  await bound('small')
  await world.finish('first')
  await bound('second')
})

it('A claim of a pod that runs on another node is given up', async () => {
  await world.addNode('a', 12 * GIB)
  const first = world.start()
  const { metadata } = await world.addPod('train', '8Gi')
  await bound('train')
  await first.stop()
  await world.addNode('b', 12 * GIB)
  const made = await world.api.create(ownResource(GPU_NODE), { metadata: { name: 'b' } })
  const key = { podUid: metadata.uid ?? '', podNamespace: 'default', podName: 'train' }
  const claim = { ...key, gpuUuids: ['b-GPU-0'], vramMib: 8 * GIB, swappable: true }
  const status = { claims: [claim] }
  await world.api.replace(ownResource(GPU_NODE), { ...made, status }, { subresource: 'status' })
  world.start()
  await world.addPod('other', '8Gi')
  expect((await bound('other')).spec.nodeName).toBe('b')
  const names = (await world.status('b')).claims?.map(({ podName }) => podName)
  expect([names, (await world.status('a')).claims?.length]).toEqual([['other'], 1])
})

it('A leader is announced before it places pods, so that agents report to it', async () => {
  const announced: unknown[] = []
  const operator = world.start({
    onLeading: (isLeading) => announced.push([isLeading, operator.placement === null]),
  })
  await vi.waitFor(() => expect(operator.isLeading).toBe(true), WAIT)
  expect(announced).toEqual([[true, true]])
})

it('A leader that is paused between claim and binding cannot overbook after a takeover', async () => {
  await world.addNode('a', 24 * GIB)
  const [paused, claimed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const pause = new Pause()
  const newClock = () => new ProcessClock(createSystemClock(), pause)
  const { api } = world
  const slow: KubeApi = {
    ...delegating(api),
    create: async (kind, object, options) => {
      if (options?.subresource === 'binding') {
        claimed.resolve()
        await paused.promise
      }
      return api.create(kind, object, options)
    },
  }
  world.start({ newClock, api: slow })
  await world.addPod('first', '20Gi')
  await claimed.promise
  // Its binding is under way, and it no longer renews its lease.
  pause.begin()
  await world.addPod('urgent', '20Gi', (pod) => ({
    ...pod,
    spec: { ...pod.spec, priorityClassName: 'headroom-p0' },
  }))
  world.start()
  await bound('urgent')
  paused.resolve()
  await reason('first', 'WaitingForVRAM')
  expect((await world.pod('first')).spec.nodeName).toBeUndefined()
  const { claims = [] } = await world.status('a')
  expect(claims.map(({ podName }) => podName)).toEqual(['urgent'])
  pause.end()
})

it('A claim that an earlier leader stores after a takeover is given up', async () => {
  await world.addNode('a', 24 * GIB)
  world.start()
  await vi.waitFor(async () => expect((await world.status('a')).gpuCount).toBe(1), WAIT)
  const kind = ownResource(GPU_NODE)
  const stored = await world.api.get(kind, { name: 'a' })
  const late: Claim = {
    ...{ podUid: 'late', podNamespace: 'default', podName: 'late' },
    ...{ gpuUuids: ['a-GPU-0'], vramMib: 8 * GIB, swappable: true },
  }
  const status = { ...(stored['status'] as GPUNodeStatus), claims: [late] }
  await world.api.replace(kind, { ...stored, status }, { subresource: 'status' })
  await vi.waitFor(async () => expect((await world.status('a')).claims ?? []).toEqual([]), WAIT)
})

it('A node that the scheduler does not propose gives way to another one', async () => {
  await world.addNode('a', 16 * GIB)
  await world.addNode('b', 24 * GIB)
  world.unfit.add('a')
  world.start({ bindWithinMs: 500 })
  await world.addPod('train', '8Gi')
  expect((await bound('train')).spec.nodeName).toBe('b')
})

it('Selector, affinity, taints and group of a pod choose its nodes', async () => {
  await world.addNode('a', 12 * GIB)
  await world.addNode('b', 24 * GIB)
  await world.addNode('c', 24 * GIB)
  const label = (name: string, labels: Record<string, string>) =>
    world.api.patch(NODES, { name }, { type: 'merge', body: { metadata: { labels } } })
  await label('b', { zone: 'west' })
  await label('c', { [GROUP_LABEL]: 'team' })
  world.start()
  await world.addPod('west', '8Gi', (pod) => ({
    ...pod,
    spec: { ...pod.spec, nodeSelector: { zone: 'west' } },
  }))
  await world.addPod('team', '8Gi', (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, [GROUP_LABEL]: 'team' } },
  }))
  expect((await bound('west')).spec.nodeName).toBe('b')
  expect((await bound('team')).spec.nodeName).toBe('c')
  await world.addPod('any', '8Gi')
  expect((await bound('any')).spec.nodeName).toBe('a')
  await world.addPod('east', '8Gi', (pod) => ({
    ...pod,
    spec: { ...pod.spec, nodeSelector: { zone: 'east' } },
  }))
  expect(await reason('east', 'WaitingForVRAM')).toBe(
    'Waiting for a node: node selector, node affinity, tolerations or group (label headroom.dev/group) of ' +
      'the pod rule out all 3 nodes with the label headroom.dev/enabled: "true".',
  )
})

it('A pod waits while no node has the label', async () => {
  world.start()
  await world.addPod('first', '8Gi')
  expect(await reason('first', 'WaitingForVRAM')).toBe(
    'Waiting for a node: none has the label headroom.dev/enabled: "true".',
  )
})

it('A pod that another controller holds reserves nothing until its gate is gone', async () => {
  await world.addNode('a', 24 * GIB)
  world.start()
  await world.addPod('held', '20Gi', (pod) => ({
    ...pod,
    spec: { ...pod.spec, schedulingGates: [{ name: 'other.example/gate' }] },
  }))
  await world.addPod('free', '20Gi')
  await bound('free')
  await world.finish('free')
  const key = { namespace: 'default', name: 'held' }
  const body = [
    { op: 'test', path: '/spec/schedulingGates/0/name', value: 'other.example/gate' },
    { op: 'remove', path: '/spec/schedulingGates/0' },
  ] as const
  await world.api.patch(PODS, key, { type: 'json', body })
  await bound('held')
})

it('A pod that is deleted while it waits leaves the queue', async () => {
  await world.addNode('a', 24 * GIB)
  const operator = world.start()
  await world.addPod('first', '20Gi')
  await bound('first')
  await world.addPod('second', '20Gi')
  await reason('second', 'WaitingForVRAM')
  await world.api.delete(PODS, { namespace: 'default', name: 'second' })
  await vi.waitFor(() => expect(operator.placement?.controller.views.counts().pending).toBe(0), WAIT)
})

it('The percentage of a node follows policies and label, and the GPUNode says from where', async () => {
  await world.addNode('a', 20 * GIB)
  world.start({ helmPercent: 10 })
  const overcommit = async () => (await world.status('a')).overcommit
  const is = (percent: number, source: string) =>
    vi.waitFor(async () => expect(await overcommit()).toEqual({ percent, source }), WAIT)
  await is(10, 'Helm')
  await world.api.create(ownResource(CLUSTER_GPU_POLICY), { ...aClusterPolicy(20) })
  await is(20, 'ClusterGPUPolicy')
  const labels = { [NODE_LABELS.overcommitPercent]: '30' }
  await world.api.patch(NODES, { name: 'a' }, { type: 'merge', body: { metadata: { labels } } })
  await is(30, 'NodeLabel')
  await world.api.create(ownResource(VENDOR_NODE_POLICY), { ...aNodePolicy('p', 0, 'a') })
  await is(0, 'VendorNodePolicy')
  const { conditions = [], effectiveMib } = await world.status('a')
  expect(effectiveMib).toBe(20 * GIB)
  expect(conditions.find(({ type }) => type === 'OverrideConflict')?.status).toBe('True')
  await vi.waitFor(async () => {
    const policy = await world.api.get(ownResource(VENDOR_NODE_POLICY), { name: 'p' })
    expect(policy['status']).toMatchObject({ conditions: [{ type: 'Ready', status: 'True' }] })
  }, WAIT)
})

it('The GPUNode of a node that lost its label, or is gone, stays until its last pod ends', async () => {
  await world.addNode('a', 24 * GIB)
  await world.addNode('b', 24 * GIB)
  world.start()
  const ready = (name: string, wanted: string) =>
    vi.waitFor(async () => {
      const { conditions = [] } = await world.status(name)
      expect(conditions.find(({ type }) => type === 'Ready')?.reason).toBe(wanted)
    }, WAIT)
  for (const name of ['a', 'b']) await ready(name, 'GPUsDeclared')
  const { conditions = [] } = await world.status('a')
  expect(conditions.find(({ type }) => type === 'Ready')?.message).toBe('Its GPU is available to pods.')
  world.unfit.add('a')
  await world.addPod('last', '4Gi')
  const uses = async (): Promise<number | undefined> => (await world.status('b')).claims?.length
  await vi.waitFor(async () => expect(await uses()).toBe(1), WAIT)
  const labels = { [NODE_LABELS.enabled]: null }
  await world.api.patch(NODES, { name: 'a' }, { type: 'merge', body: { metadata: { labels } } })
  await world.api.delete(NODES, { name: 'b' })
  await ready('b', 'NoNode')
  expect(await world.status('b')).toMatchObject({ physicalMib: 0, claims: [{ podName: 'last' }] })
  await world.finish('last')
  for (const name of ['a', 'b'])
    await vi.waitFor(() => expect(world.status(name)).rejects.toMatchObject({ code: 404 }), WAIT)
})

it('No term waits for the agent of a node that is gone', async () => {
  const type = 'AgentReady'
  const left = { metadata: { name: 'a' }, status: { conditions: [{ type, status: 'True' }] } }
  const objects = { gpuNodeNames: () => ['a'], gpuNode: () => left, node: () => null }
  const clock = new VirtualClock(0)
  const heard = agentsHeard({ objects, agents: new AgentLinks(clock) }, clock).then(() => 'begins')
  expect(await Promise.race([heard, new Promise((waited) => setImmediate(waited))])).toBe('begins')
})

it('An operator that observes says what it would do, and changes no pod, claim or gate', async () => {
  await world.addNode('a', 24 * GIB)
  const operator = world.start({ observes: true })
  const plain = { ...aPod({ [POD_ANNOTATIONS.podVram]: '20Gi' }) }
  const create = (name: string, spec: Partial<Pod['spec']>): Promise<unknown> =>
    world.api.create(PODS, {
      ...{ ...plain, metadata: { ...plain.metadata, name }, spec: { ...plain.spec, ...spec } },
    })
  await create('first', { nodeName: 'elsewhere' })
  expect(await reason('first', 'WouldRun')).toMatch(/^Headroom only observes\. It is on elsewhere\. .* a now/)
  await create('second', {})
  expect(await reason('second', 'WouldWait')).toMatch(
    /^Headroom only observes\. It has no node yet\. Waiting/,
  )
  const before = await world.pod('second')
  const extender = operator.extender()
  expect(extender?.filter(before.metadata.uid ?? '', ['a']).nodeNames).toEqual([])
  expect(await extender?.bind(before.metadata.uid ?? '', 'a')).toBe('Headroom only observes')
  await world.finish('first')
  await reason('second', 'WouldRun')
  const { metadata, spec } = await world.pod('second')
  expect([metadata.annotations, spec]).toEqual([before.metadata.annotations, before.spec])
  expect((await world.status('a')).claims ?? []).toEqual([])
})
