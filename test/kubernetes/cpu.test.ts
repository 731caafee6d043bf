/** Pods that lack CPU, with the official scheduler: they keep no others waiting, and nothing is evicted. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLASS_LABEL } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY } from '../../operator/contract/policies.ts'
import { ownResource, PODS, PRIORITY_CLASSES } from '../../operator/ports/kube-api.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { IdleAgent } from '../support/kubernetes/idle-agent.ts'
import { PlacingWorld } from '../support/kubernetes/placing-world.ts'

const PODS_EACH = 20
const WITHIN_MS = 60_000
const WAIT_MS = Number(process.env['KUBERNETES_WAIT_MINUTES'] ?? 1) * 60_000
const GPU_MIB = 24_576

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('With the scheduler of Kubernetes', () => {
  let world: PlacingWorld
  let agent: IdleAgent | null = null
  beforeAll(async () => {
    world = await PlacingWorld.start()
  })
  afterAll(async () => {
    await agent?.stop()
    await world?.stop()
  })

  it(`${PODS_EACH} pods that no node has CPU for do not delay ${PODS_EACH} others`, async () => {
    for (const name of ['a', 'b', 'c', 'd']) await world.addNode(name, 16, GPU_MIB / 1024, GPU_MIB / 1024)
    const names = Array.from({ length: PODS_EACH }, (_, i) => i)
    // Three fit each GPU: 24 in all, and the older half cannot run.
    for (const i of names) await world.addPod(`stuck-${i}`, '7Gi', '', { cpu: '100' })
    for (const i of names) await world.addPod(`fits-${i}`, '7Gi', '', { cpu: '500m' })
    const from = performance.now()
    await Promise.all(names.map((i) => world.bound(`fits-${i}`)))
    const tookMs = Math.round(performance.now() - from)
    process.stdout.write(
      `${PODS_EACH} pods were bound within ${tookMs} ms, in spite of ${PODS_EACH} others\n`,
    )
    expect(tookMs).toBeLessThanOrEqual(WITHIN_MS)
    const { items } = await world.api.list(PODS)
    const bound = items.filter(({ spec }) => (spec as { nodeName?: string }).nodeName !== undefined)
    expect(new Set(bound.map(({ metadata }) => metadata.name))).toEqual(
      new Set(names.map((i) => `fits-${i}`)),
    )
    for (const { metadata } of items) await world.plane.kubectl(['delete', 'pod', metadata.name!, '--force'])
  })

  it('A P0 pod that lacks VRAM, and then CPU, evicts none', { timeout: 2 * WAIT_MS + 120_000 }, async () => {
    for (const [name, value, label] of [
      ['low', -100, 'P4'],
      ['urgent', 1_000_000_000, 'P0'],
    ] as const)
      // Kubernetes itself would let it evict pods of a lower value.
      await world.api.create(PRIORITY_CLASSES, {
        ...{ metadata: { name, labels: { [CLASS_LABEL]: label } }, value },
        preemptionPolicy: 'PreemptLowerPriority',
      })
    const kind = ownResource(CLUSTER_GPU_POLICY)
    const spec = { defaultVramOvercommitPercent: 100, safetyReserveMib: 0, idleSwapOutSeconds: 86_400 }
    await world.api.create(kind, { metadata: { name: 'default' }, spec })
    await world.addNode('p0', 16)
    agent = new IdleAgent({ world, node: 'p0', vramMib: [GPU_MIB] })
    const low = ['low-1', 'low-2']
    for (const name of low) {
      await world.addPod(name, '12Gi', 'p0', { cpu: '7', priorityClassName: 'low' })
      await world.bound(name)
    }
    const before = await Promise.all(low.map((name) => world.pod(name)))
    await world.addPod('urgent', '24Gi', 'p0', { cpu: '12', priorityClassName: 'urgent' })
    const staysSo = async (): Promise<void> => {
      for (const until = performance.now() + WAIT_MS / 2; performance.now() < until; await pause(1_000)) {
        expect((await world.pod('urgent')).spec.nodeName).toBeUndefined()
        for (const { metadata } of before) {
          const now = await world.pod(metadata.name!)
          expect([now.metadata.uid, now.metadata.deletionTimestamp]).toEqual([metadata.uid, undefined])
          expect(now.status?.conditions?.map(({ type }) => type)).not.toContain('DisruptionTarget')
        }
      }
    }
    await world.waiting('urgent')
    await staysSo()
    // Its VRAM can be had now: the scheduler looks at it, and finds no CPU.
    await world.api.patch(
      kind,
      { name: 'default' },
      { type: 'merge', body: { spec: { idleSwapOutSeconds: 1 } } },
    )
    await staysSo()
    expect(JSON.stringify((await world.pod('urgent')).status)).toContain('Insufficient cpu')
  })
})
