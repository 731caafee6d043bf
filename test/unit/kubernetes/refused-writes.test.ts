/** The API server refuses writes of some objects: the operator goes on with all others. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION } from '../../../operator/contract/names.ts'
import { GPU_NODE } from '../../../operator/contract/policies.ts'
import { type KubeApi, KubeError, ownResource, PODS } from '../../../operator/ports/kube-api.ts'
import { delegating, OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
let world: OperatorWorld
/** Why writes of the objects with these names are refused. */
let refusals: Map<string, Error>
beforeEach(() => {
  world = new OperatorWorld()
  refusals = new Map()
})
afterEach(() => world.stop())

/** @param verb refused for the objects of these names */
function refusing(verb: 'patch' | 'replace'): KubeApi {
  const { api } = world
  const check = (name = ''): void => {
    const refusal = refusals.get(name)
    if (refusal !== undefined) throw refusal
  }
  return {
    ...delegating(api),
    replace: async (kind, object, options) => {
      if (verb === 'replace') check(object.metadata.name)
      return api.replace(kind, object, options)
    },
    patch: async (kind, key, patch, options) => {
      if (verb === 'patch') check(key.name)
      return api.patch(kind, key, patch, options)
    },
  }
}
const forbidden = new KubeError(403, 'Forbidden', 'a policy forbids it')
const failed = new KubeError(500, 'InternalError', 'the webhook does not answer')
const nodeOf = async (name: string) => (await world.pod(name)).spec.nodeName
const bound = (name: string): Promise<string> =>
  vi.waitFor(async () => (await nodeOf(name)) ?? expect.unreachable(world.notes.join('\n')), WAIT)
const reasonOf = ({ status }: Pod) =>
  status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)?.reason
const waits = (name: string) =>
  vi.waitFor(async () => expect(reasonOf(await world.pod(name))).toBe('WaitingForVRAM'), WAIT)
const notesOf = (text: string) => world.notes.filter((line) => line.includes(text))

/** As an operator leaves it that ended between claim and binding. */
async function addClaim(node: string, { metadata }: Pod, vramMib: number): Promise<void> {
  const kind = ownResource(GPU_NODE)
  const made = await world.api.create(kind, { metadata: { name: node } })
  const key = { podUid: metadata.uid ?? '', podNamespace: 'default', podName: metadata.name ?? '' }
  const claims = [{ ...key, gpuUuids: [`${node}-GPU-0`], vramMib, swappable: true }]
  await world.api.replace(kind, { ...made, status: { claims } }, { subresource: 'status' })
}

it('A node whose report is refused gets no pods until it is stored, and others get theirs', async () => {
  await world.addNode('a', 24 * GIB)
  await world.addNode('b', 12 * GIB)
  refusals.set('a', failed)
  world.start({ api: refusing('replace') })
  await world.addPod('first', '8Gi')
  expect(await bound('first')).toBe('b')
  await world.addPod('second', '8Gi')
  await waits('second')
  expect(notesOf('the report of node a')).toHaveLength(1)
  refusals.clear()
  expect(await bound('second')).toBe('a')
})

it('A claim that cannot be given up stays, and its node gets no pods until it can', async () => {
  await world.addNode('a', 24 * GIB)
  await world.addNode('b', 12 * GIB)
  const held = await world.addPod('held', '8Gi', ({ spec, ...pod }) => ({
    ...pod,
    spec: { ...spec, schedulingGates: [{ name: 'other.example/gate' }] },
  }))
  await addClaim('a', held, 8 * GIB)
  refusals.set('held', forbidden)
  world.start({ api: refusing('patch') })
  await world.addPod('first', '8Gi')
  expect(await bound('first')).toBe('b')
  await world.addPod('second', '8Gi')
  await waits('second')
  expect((await world.status('a')).claims).toMatchObject([{ podName: 'held' }])
  expect(notesOf('the claims of node a')).toHaveLength(1)
  refusals.clear()
  expect(await bound('second')).toBe('a')
  expect((await world.status('a')).claims).toMatchObject([{ podName: 'second' }])
})

it('A pod of a node that could not be settled stays counted there', async () => {
  await world.addNode('a', 12 * GIB)
  const first = world.start()
  await world.addPod('first', '8Gi')
  await bound('first')
  await first.stop()
  await world.addNode('b', 12 * GIB)
  const gone = await world.addPod('gone', '1Gi')
  await world.api.delete(ownResource(GPU_NODE), { name: 'a' })
  await addClaim('a', gone, 1 * GIB)
  await world.api.delete(PODS, { namespace: 'default', name: 'gone' })
  refusals.set('a', forbidden)
  const operator = world.start({ api: refusing('replace') })
  await world.addPod('second', '8Gi')
  expect(await bound('second')).toBe('b')
  refusals.clear()
  await world.addPod('third', '8Gi')
  await waits('third')
  expect((await world.status('a')).claims).toMatchObject([{ podName: 'first' }])
  expect(operator.placement?.controller.views.counts()).toMatchObject({ running: 2, pending: 1 })
})

it('A term does not begin while the API server fails for every node, or does not answer', async () => {
  await world.addNode('a', 24 * GIB)
  await world.addNode('b', 24 * GIB)
  for (const name of ['a', 'b']) refusals.set(name, failed)
  const operator = world.start({ api: refusing('replace') })
  await vi.waitFor(() => expect(notesOf('placing cannot begin')).not.toEqual([]), WAIT)
  expect(operator.placement).toBeNull()
  refusals.delete('a')
  refusals.set('b', new Error('connect ECONNREFUSED'))
  await vi.waitFor(() => expect(notesOf('begin: connect ECONNREFUSED')).not.toEqual([]), WAIT)
  expect(operator.placement).toBeNull()
  refusals.clear()
  await world.addPod('train', '8Gi')
  await bound('train')
})

it('A pod whose condition is refused does not hold up the reports about others', async () => {
  await world.addNode('a', 12 * GIB)
  refusals.set('blocked', forbidden)
  world.start({ api: refusing('patch') })
  await world.addPod('blocked', '20Gi')
  await world.addPod('first', '8Gi')
  await bound('first')
  await world.finish('first')
  await world.addPod('waiting', '20Gi')
  await waits('waiting')
  expect(notesOf('the condition of pod default/blocked')).toHaveLength(1)
  const ready = async () => (await world.status('a')).conditions?.find(({ type }) => type === 'Ready')
  await vi.waitFor(async () => expect((await ready())?.status).toBe('True'), WAIT)
})
