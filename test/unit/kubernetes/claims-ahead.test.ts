/** Pods on their way to one node get their claims in the write of the first one that is bound. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSystemClock, type SystemClock } from '../../../controller/adapters/system-clock.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { PLACING_ANNOTATION } from '../../../operator/contract/names.ts'
import { type Claim, GPU_NODE, type GPUNodeStatus } from '../../../operator/contract/policies.ts'
import type { MemoryApi } from '../../../operator/memory-api/memory-api.ts'
import { withAddedClaim } from '../../../operator/placing/claims.ts'
import { NodeBook } from '../../../operator/placing/node-book.ts'
import { type Bound, PodBindings, type PodBindingsOptions } from '../../../operator/placing/pod-bindings.ts'
import { type KubeApi, KubeError, ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { delegating } from '../../support/kubernetes/operator-world.ts'
import { aPod } from '../../support/kubernetes/objects.ts'
import { WAIT } from '../../support/wait.ts'

const NAMES = ['first', 'second', 'third'] as const
type Name = (typeof NAMES)[number]
let clock: SystemClock
let api: MemoryApi
let pods: Map<string, Pod>
let bindings: PodBindings
let ends: Map<Name, Bound>

beforeEach(async () => {
  clock = createSystemClock()
  api = memoryApi()
  ends = new Map()
  pods = new Map()
  const gpu = { uuid: 'GPU-0', physicalMib: 24_576, effectiveMib: 24_576, committedMib: 0, residentMib: 0 }
  const made = await api.create(ownResource(GPU_NODE), { metadata: { name: 'a' } })
  const status = { gpus: [{ ...gpu, foreignMib: 0, swappedOutMib: 0 }] }
  await api.replace(ownResource(GPU_NODE), { ...made, status }, { subresource: 'status' })
  for (const name of NAMES) await api.create(PODS, { ...aPod(), metadata: { ...aPod().metadata, name } })
  await readPods()
  bindings = bindingsOf(api)
  for (const name of NAMES) begin(name)
  // Each has a new version, as when its gate is removed.
  await vi.waitFor(async () => {
    await readPods()
    for (const pod of pods.values()) expect(pod.metadata.annotations).toHaveProperty([PLACING_ANNOTATION])
  }, WAIT)
})
afterEach(() => {
  bindings.close()
  clock.stop()
})

function bindingsOf(
  through: PodBindingsOptions['api'],
  onFault = (error: unknown): void => expect.unreachable(String(error)),
): PodBindings {
  const book = new NodeBook(through, 'a', null)
  return new PodBindings({
    ...{ api: through, clock, limits: () => ({ percent: 0, reserveMib: 0 }), leads: () => true },
    ...{ pod: (uid) => [...pods.values()].find(({ metadata }) => metadata.uid === uid), book: () => book },
    whyWaiting: () => 'Waiting for VRAM.',
    onFault,
  })
}

async function readPods(): Promise<void> {
  for (const { metadata, ...pod } of (await api.list(PODS)).items)
    pods.set(metadata.name ?? '', { metadata, ...pod } as unknown as Pod)
}
const uid = (name: Name): string => pods.get(name)?.metadata.uid ?? ''

function claimOf(name: Name): Claim {
  const pod = { podUid: uid(name), podNamespace: 'default', podName: name }
  return { ...pod, gpuUuids: ['GPU-0'], vramMib: 8192, swappable: true }
}
function begin(name: Name, at = bindings): void {
  at.begin(claimOf(name), 'a', (bound) => ends.set(name, bound))
}
async function storedClaims(): Promise<readonly string[]> {
  const { claims = [] } = (await api.get(ownResource(GPU_NODE), { name: 'a' }))['status'] as GPUNodeStatus
  return claims.map(({ podName }) => podName)
}
const nodeVersion = async () => (await api.get(ownResource(GPU_NODE), { name: 'a' })).metadata.resourceVersion
const nodeOf = async (name: Name) => (await api.get(PODS, { namespace: 'default', name }))['spec']

it('Three pods of one node are bound with one write of their claims', async () => {
  expect(await bindings.bind(uid('first'), 'a')).toBeNull()
  expect(await storedClaims()).toEqual(NAMES)
  const version = await nodeVersion()
  for (const name of ['second', 'third'] as const) {
    expect(await bindings.bind(uid(name), 'a')).toBeNull()
    expect(await nodeOf(name)).toMatchObject({ nodeName: 'a' })
  }
  expect(await nodeVersion()).toBe(version)
})

it('A pod that is not bound after all has given up its claim before the controller knows', async () => {
  await bindings.bind(uid('first'), 'a')
  bindings.abandon(uid('second'), 'the pod is deleted')
  bindings.filter(uid('third'), ['b'])
  expect(ends.has('second')).toBe(false)
  await vi.waitFor(() => expect(ends.get('second')).toMatchObject({ error: 'the pod is deleted' }), WAIT)
  await vi.waitFor(() => expect(ends.get('third')).toMatchObject({ refused: { cause: 'task' } }), WAIT)
  expect(await storedClaims()).toEqual(['first'])
})

it('A pod whose claim another operator has given up is not bound, though its copy is current', async () => {
  await bindings.bind(uid('first'), 'a')
  const other = bindingsOf(api)
  const key = { namespace: 'default', name: 'second' }
  await other.release(uid('second'), key, new NodeBook(api, 'a', null))
  await readPods()
  expect(await bindings.bind(uid('second'), 'a')).toBe('its claim was released')
  expect(await nodeOf('second')).not.toHaveProperty('nodeName')
  expect(await bindings.bind(uid('third'), 'a')).toBeNull()
  expect(await storedClaims()).toEqual(['first', 'third'])
})

it('A binding that is late is refused, although the operator that gave up its claim has failed', async () => {
  const later = Promise.withResolvers<void>()
  const create: KubeApi['create'] = async (...asked) => {
    await later.promise
    return api.create(...asked)
  }
  const late = bindingsOf({ ...delegating(api), create })
  begin('first', late)
  const bound = late.bind(uid('first'), 'a')
  await vi.waitFor(async () => expect(await storedClaims()).toContain('first'), WAIT)
  // The API server fails once the claim is given up.
  const patch: KubeApi['patch'] = async (...asked) => {
    if ((await storedClaims()).length === 0) throw new KubeError(500, 'InternalError', 'etcd is away')
    return api.patch(...asked)
  }
  const other = bindingsOf({ ...delegating(api), patch })
  const key = { namespace: 'default', name: 'first' }
  await expect(other.release(uid('first'), key, new NodeBook(api, 'a', null))).rejects.toThrow('etcd is away')
  later.resolve()
  expect(await bound).toBe('its claim was released')
  expect(await nodeOf('first')).not.toHaveProperty('nodeName')
})

it('A pod whose binding got no answer has one claim, though the repair has restored it', async () => {
  const create: KubeApi['create'] = async (...asked) => {
    await api.create(...asked)
    throw new Error('no answer')
  }
  const patch: KubeApi['patch'] = async (...asked) => {
    const pod = await api.patch(...asked)
    const isGivenUp = (await storedClaims()).length === 0 && 'nodeName' in ((await nodeOf('first')) as object)
    const book = new NodeBook(api, 'a', null)
    if (isGivenUp) await book.change((status) => withAddedClaim(status, claimOf('first')))
    return pod
  }
  const unanswered = bindingsOf({ ...delegating(api), create, patch }, () => {})
  begin('first', unanswered)
  expect(await unanswered.bind(uid('first'), 'a')).toBeNull()
  expect(await storedClaims()).toEqual(['first'])
})

it('A scheduler that asks again while a pod is being bound gets the same answer', async () => {
  const answers = await Promise.all([1, 2].map(() => bindings.bind(uid('first'), 'a')))
  expect(answers).toEqual([null, null])
  expect(await nodeOf('first')).toMatchObject({ nodeName: 'a' })
})
