/** The condition of a pod among those of other writers. */
import { expect, it } from 'vitest'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { PodConditions } from '../../../operator/placing/pod-conditions.ts'
import { type KubeObject, PODS } from '../../../operator/ports/kube-api.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

const KEY = { namespace: 'default', name: 'train' }
const BOUND = { status: 'True', reason: 'Bound', message: 'Its VRAM is on a.' } as const

it.each([
  ['a phase', { phase: 'Succeeded' }],
  ['conditions', { conditions: [{ type: 'PodScheduled', status: 'True' }] }],
])('The condition that is written from an old copy replaces no %s of another writer', async (_, status) => {
  const api = memoryApi()
  const copy = (await api.create(PODS, aPod() as unknown as KubeObject)) as unknown as Pod
  await api.patch(PODS, KEY, { type: 'merge', body: { status } }, { subresource: 'status' })
  const conditions = new PodConditions(api, () => 0)
  expect(await conditions.write(copy, BOUND)).toBeNull()
  const pod = await api.get(PODS, KEY)
  expect(pod['status']).toEqual(status)
  expect(await conditions.write(pod as unknown as Pod, BOUND)).toBe('reason')
  expect(JSON.stringify(await api.get(PODS, KEY))).toContain('Bound')
})

it('A pod that is gone is forgotten', async () => {
  const api = memoryApi()
  const pod = (await api.create(PODS, aPod() as unknown as KubeObject)) as unknown as Pod
  const conditions = new PodConditions(api, () => 0)
  await conditions.write(pod, BOUND)
  conditions.forgetGone(() => false)
  expect(conditions.isDue(pod, 0)).toBe(false)
  conditions.forgetGone((uid) => uid === pod.metadata.uid)
  expect(conditions.isDue(pod, 0)).toBe(true)
})
