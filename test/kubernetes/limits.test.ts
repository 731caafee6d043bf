/**
 * What percentage, reserve and idle period mean for pods on a GPU, with etcd, kube-apiserver and
 * kube-scheduler. Agents without processes report that all pods are idle, and swap them at once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY } from '../../operator/contract/policies.ts'
import { ownResource } from '../../operator/ports/kube-api.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { IdleAgent } from '../support/kubernetes/idle-agent.ts'
import { PlacingWorld, STACK_WAIT } from '../support/kubernetes/placing-world.ts'

const PHYSICAL_MIB = 10_240
/** Several times the idle period at which the pod makes room. */
const STAYS_MS = 5_000
const NOSWAP = { annotations: { [POD_ANNOTATIONS.swapFromVram]: 'false' } }

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('On a real control plane', () => {
  let world: PlacingWorld
  const agents: IdleAgent[] = []
  beforeAll(async () => {
    world = await PlacingWorld.start()
    await world.api.create(ownResource(CLUSTER_GPU_POLICY), { metadata: { name: 'default' }, spec: {} })
  })
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()))
    await world?.stop()
  })

  const setCluster = (spec: object): Promise<unknown> =>
    world.api.patch(ownResource(CLUSTER_GPU_POLICY), { name: 'default' }, { type: 'merge', body: { spec } })
  async function addNode(name: string, spec: object): Promise<IdleAgent> {
    await world.api.create(ownResource(VENDOR_NODE_POLICY), { metadata: { name }, spec })
    await world.addNode(name, 64)
    const agent = new IdleAgent({ world, node: name, vramMib: [PHYSICAL_MIB] })
    agents.push(agent)
    await vi.waitFor(async () => {
      const { physicalMib, conditions = [] } = await world.gpuNode(name)
      expect(physicalMib).toBe(PHYSICAL_MIB)
      expect(conditions.find(({ type }) => type === 'AgentReady')).toMatchObject({ status: 'True' })
    }, STACK_WAIT)
    return agent
  }
  const committed = async (name: string): Promise<number> =>
    ((await world.gpuNode(name)).claims ?? []).reduce((sum, { vramMib }) => sum + vramMib, 0)

  it.each([
    // A pod that is never swapped does not count the limit: it waits for VRAM that is free at 0%, and never
    // keeps a swappable pod that needs the whole GPU from returning.
    [0, 10_240, 5_120, 'waits'],
    [20, 12_288, 5_120, 'is bound'],
    [50, 15_360, 5_120, 'is bound'],
    [1000, 112_640, 10_240, 'waits'],
  ])(
    'With %i percent swappable pods get %i MiB of a GPU of 10 GiB; after pods of %i MiB one that stays %s',
    async (percent, limitMib, sizeMib, stays) => {
      await setCluster({ safetyReserveMib: 0, idleSwapOutSeconds: 1 })
      const node = `percent-${percent}`
      await addNode(node, { vramOvercommitPercent: percent })
      const names: string[] = []
      const add = async (mib: number, given = {}): Promise<string> => {
        names.push(`${node}-${names.length}`)
        await world.addPod(names.at(-1)!, `${mib}Mi`, node, given)
        return names.at(-1)!
      }
      for (let left = limitMib; left > 0; left -= sizeMib)
        await world.bound(await add(Math.min(sizeMib, left)))
      const more = await add(1)
      await world.waiting(more)
      expect(await committed(node)).toBe(limitMib)
      const staying = await add(1, NOSWAP)
      await (stays === 'waits' ? world.waiting(staying) : world.bound(staying))
      expect((await world.pod(more)).spec.nodeName).toBeUndefined()
      for (const name of names) await world.finish(name)

      await world.bound(await add(PHYSICAL_MIB - 1, NOSWAP))
      const second = await add(2, NOSWAP)
      await world.waiting(second)
      await world.bound(await add(1))
      expect((await world.pod(second)).spec.nodeName).toBeUndefined()
      for (const name of names) await world.finish(name)
    },
  )

  it('The reserve is 2 GiB, or what the ClusterGPUPolicy says, or what the node says', async () => {
    await setCluster({ safetyReserveMib: null })
    await addNode('reserve', { vramOvercommitPercent: 0 })
    await addNode('own-reserve', { vramOvercommitPercent: 0, safetyReserveMib: 1024 })
    await world.addPod('most', `${PHYSICAL_MIB - 2048}Mi`, 'reserve')
    await world.bound('most')
    await world.addPod('more', '1Mi', 'reserve')
    await world.waiting('more')
    await world.addPod('own-most', `${PHYSICAL_MIB - 1024}Mi`, 'own-reserve')
    await world.bound('own-most')
    await setCluster({ safetyReserveMib: 0 })
    await world.bound('more')
    await world.addPod('own-more', '1Mi', 'own-reserve')
    await world.waiting('own-more')
    for (const name of ['most', 'more', 'own-most', 'own-more']) await world.finish(name)
  })

  it('A pod makes room after the idle period of the ClusterGPUPolicy, and not before', async () => {
    await setCluster({ safetyReserveMib: 0, idleSwapOutSeconds: 86_400 })
    const agent = await addNode('idle', { vramOvercommitPercent: 100 })
    const { metadata } = await world.addPod('first', `${PHYSICAL_MIB}Mi`, 'idle')
    await world.bound('first')
    await world.addPod('second', `${PHYSICAL_MIB}Mi`, 'idle')
    await world.waiting('second')
    for (const until = performance.now() + STAYS_MS; performance.now() < until; await pause(200))
      expect(agent.pods.get(metadata.uid ?? '')).toMatchObject({ residency: 'in', order: 0 })
    await setCluster({ idleSwapOutSeconds: 1 })
    await world.bound('second')
    expect(agent.pods.get(metadata.uid ?? '')?.order).toBeGreaterThan(0)
  })
})
