/** A pod on its way to a node, while the conditions that the scheduler writes arrive late. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSystemClock, type SystemClock } from '../../../controller/adapters/system-clock.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { NodeBook } from '../../../operator/placing/node-book.ts'
import { type Bound, PodBindings } from '../../../operator/placing/pod-bindings.ts'
import type { MemoryApi } from '../../../operator/memory-api/memory-api.ts'
import { GPU_NODE } from '../../../operator/contract/policies.ts'
import { ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { aPod } from '../../support/kubernetes/objects.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { WAIT } from '../../support/wait.ts'

const KEY = { namespace: 'default', name: 'train' }
let clock: SystemClock
let api: MemoryApi
let pod: Pod
let bindings: PodBindings
let ends: Bound[]
let isKnown: boolean

beforeEach(async () => {
  clock = createSystemClock()
  api = memoryApi()
  ends = []
  isKnown = true
  pod = (await api.create(PODS, { ...aPod() })) as unknown as Pod
  const gpu = { uuid: 'GPU-0', physicalMib: 24_576, effectiveMib: 24_576, committedMib: 0, residentMib: 0 }
  for (const name of ['weak', 'strong']) {
    const made = await api.create(ownResource(GPU_NODE), { metadata: { name } })
    const status = { gpus: [{ ...gpu, foreignMib: 0, swappedOutMib: 0 }] }
    await api.replace(ownResource(GPU_NODE), { ...made, status }, { subresource: 'status' })
  }
  bindings = new PodBindings({
    ...{ api, clock, pod: () => (isKnown ? pod : undefined) },
    ...{ limits: () => ({ percent: 0, reserveMib: 0 }), leads: () => true },
    book: (name) => new NodeBook(api, name, null),
    whyWaiting: () => 'Waiting for VRAM.',
    onFault: (error) => expect.unreachable(String(error)),
  })
})
afterEach(() => {
  bindings.close()
  clock.stop()
})

const uid = (): string => pod.metadata.uid ?? ''
function begin(nodeName: string): void {
  const claim = { podUid: uid(), podNamespace: 'default', podName: 'train', gpuUuids: ['GPU-0'] }
  bindings.begin({ ...claim, vramMib: 8192, swappable: true }, nodeName, (bound) => ends.push(bound))
}
/** The condition that the scheduler writes after a try. */
async function said(message: string): Promise<void> {
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
  const body = { status: { conditions: [condition] } }
  pod = (await api.patch(PODS, KEY, { type: 'merge', body }, { subresource: 'status' })) as unknown as Pod
  bindings.podChanged(uid())
}
const refusalOf = (candidates: readonly string[]): string =>
  Object.values(bindings.filter(uid(), candidates).failed)[0] ?? expect.unreachable()

it('What the scheduler says about an earlier refusal does not end the way to the next node', async () => {
  begin('weak')
  const first = refusalOf(['strong'])
  await vi.waitFor(() => expect(ends).toMatchObject([{ refused: { code: 'node_constraints' } }]), WAIT)
  const second = refusalOf(['strong'])
  expect([first, second]).toEqual([
    'VRAM is reserved on weak, which is not among the candidates',
    'Waiting for VRAM.',
  ])
  begin('strong')
  expect(bindings.filter(uid(), ['strong']).nodeNames).toEqual(['strong'])
  for (const why of [first, second]) await said(`0/2 nodes are available: 1 Insufficient cpu, 1 ${why}.`)
  expect(bindings.isOnItsWay(uid())).toBe(true)
  expect(await bindings.bind(uid(), 'strong')).toBeNull()
  expect(await api.get(PODS, KEY)).toMatchObject({ spec: { nodeName: 'strong' } })
})

it('A refusal of a pod that is not known is not remembered', async () => {
  isKnown = false
  const why = refusalOf(['weak'])
  isKnown = true
  begin('weak')
  await said(`0/2 nodes are available: 1 Insufficient cpu, 1 ${why}.`)
  expect(bindings.isOnItsWay(uid())).toBe(false)
})

it('A scheduler that finds no node without asking ends the way', async () => {
  begin('weak')
  await said('0/2 nodes are available: 2 Insufficient cpu.')
  await vi.waitFor(() => expect(ends).toMatchObject([{ refused: { code: 'node_constraints' } }]), WAIT)
  expect(bindings.isOnItsWay(uid())).toBe(false)
})

it('A pod that fits no node gets no VRAM reserved on the next one until it is tried again', async () => {
  begin('weak')
  await said('0/2 nodes are available: 2 Insufficient cpu.')
  begin('strong')
  expect(bindings.isOnItsWay(uid())).toBe(false)
  await vi.waitFor(() => expect(ends).toHaveLength(2), WAIT)
  bindings.tryAgain()
  begin('strong')
  expect(await bindings.bind(uid(), 'strong')).toBeNull()
})

it('A pod that the scheduler has not tried stays on its way while others are bound', async () => {
  const time = new VirtualClock(0)
  const until = (instant: number): void => {
    time.at(instant, () => {})
    while (time.step(instant));
  }
  const next = (await api.create(PODS, {
    ...aPod(),
    metadata: { ...aPod().metadata, name: 'next' },
  })) as unknown as Pod
  bindings = new PodBindings({
    ...{ api, clock: time, limits: () => ({ percent: 0, reserveMib: 0 }), leads: () => true },
    pod: (id) => (id === next.metadata.uid ? next : pod),
    book: (name) => new NodeBook(api, name, null),
    whyWaiting: () => 'Waiting for VRAM.',
    onFault: (error) => expect.unreachable(String(error)),
  })
  begin('strong')
  const claim = { podUid: next.metadata.uid ?? '', podNamespace: 'default', podName: 'next' }
  bindings.begin({ ...claim, gpuUuids: ['GPU-0'], vramMib: 8192, swappable: true }, 'weak', () => {})
  // They have been touched, and have 10 s.
  await new Promise((resolve) => setImmediate(resolve))
  until(5_000)
  expect(await bindings.bind(claim.podUid, 'weak')).toBeNull()
  until(12_000)
  expect(bindings.isOnItsWay(uid())).toBe(true)
  until(25_000)
  expect(bindings.isOnItsWay(uid())).toBe(false)
  // It ends without a word about the node: the scheduler may be away.
  until(28_000)
  await vi.waitFor(() => expect(ends).toMatchObject([{ refused: { cause: 'passing' } }]), WAIT)
})
