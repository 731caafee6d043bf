/** Events of pods and nodes: each change once. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ADMITTED_CONDITION, NODE_LABELS } from '../../../operator/contract/names.ts'
import { GPU_NODE } from '../../../operator/contract/policies.ts'
import { EVENTS, NODES, ownResource } from '../../../operator/ports/kube-api.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

async function eventsOf(name: string): Promise<readonly string[]> {
  const { items } = await world.api.list(EVENTS)
  return items.flatMap(({ regarding, reason, type }) =>
    (regarding as { name: string }).name === name ? [`${type as string} ${reason as string}`] : [],
  )
}

async function conditionOf(name: string): Promise<string | undefined> {
  const { status } = await world.pod(name)
  return status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)?.reason
}

it('A pod that waits gets one event, and another one when it is bound, also over a restart', async () => {
  await world.addNode('a', 24_576)
  const first = world.start()
  await world.addPod('first', '20Gi')
  await vi.waitFor(async () => expect(await conditionOf('first')).toBe('Bound'), WAIT)
  await world.addPod('second', '20Gi')
  await vi.waitFor(async () => expect(await eventsOf('second')).toEqual(['Normal WaitingForVRAM']), WAIT)
  await first.stop()
  world.start()
  await world.addPod('third', '20Gi')
  await vi.waitFor(async () => expect(await eventsOf('third')).toEqual(['Normal WaitingForVRAM']), WAIT)
  expect(await eventsOf('second')).toEqual(['Normal WaitingForVRAM'])
  // A pod that starts at once has the event of the scheduler.
  expect(await eventsOf('first')).toEqual([])
  await world.finish('first')
  await vi.waitFor(async () => expect(await eventsOf('second')).toContain('Normal Bound'), WAIT)
})

it('A bad label gets one event on the GPUNode; a node that is not ours gets no GPUNode', async () => {
  await world.addNode('a', 24_576)
  await world.api.create(NODES, { metadata: { name: 'other' }, spec: {} })
  world.start()
  await vi.waitFor(() => world.status('a'), WAIT)
  const labels = { [NODE_LABELS.overcommitPercent]: 'abc' }
  await world.api.patch(NODES, { name: 'a' }, { type: 'merge', body: { metadata: { labels } } })
  await vi.waitFor(async () => expect(await eventsOf('a')).toEqual(['Warning InvalidOverride']), WAIT)
  expect(await world.status('a')).toMatchObject({ observedGeneration: 1 })
  const names = (await world.api.list(ownResource(GPU_NODE))).items.map(({ metadata }) => metadata.name)
  expect(names).toEqual(['a'])
})
