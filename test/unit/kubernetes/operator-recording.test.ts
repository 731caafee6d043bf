/** What an operator decides is recorded, and decided again to the same binds. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { redecide } from '../../../simulator/experiment/recording/redecide.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { placementOf, recordedPlacements } from '../../support/kubernetes/placements.ts'
import { RecordingInMemory } from '../../support/recording-in-memory.ts'
import { WAIT } from '../../support/wait.ts'

let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

it('The recording of an operator is decided again to the same binds', async () => {
  const recording = new RecordingInMemory()
  await world.addNode('a', 24_576, 24_576)
  await world.addNode('b', 16_384)
  world.start({ record: () => ({ tap: recording.recorder(), close: () => Promise.resolve() }) })
  const names = Array.from({ length: 12 }, (_, i) => `pod-${i}`)
  await Promise.all(names.map((name) => world.addPod(name, '6Gi')))
  const bound = async (): Promise<readonly (readonly [string, string | null])[]> => {
    const pods = await Promise.all(names.map((name) => world.pod(name)))
    const placed = pods.map((pod) => [pod.metadata.uid ?? '', placementOf(pod)] as const)
    return placed.filter(([, placement]) => placement !== null)
  }
  await vi.waitFor(async () => expect(await bound()).toHaveLength(8), WAIT)
  await Promise.all(names.map((name) => world.finish(name)))
  await vi.waitFor(
    () => expect([...(world.operators[0]?.placement?.controller.views.openTasks() ?? [])]).toEqual([]),
    WAIT,
  )
  await world.stop()
  const again = await redecide(recording.entries())
  expect([again.starts, again.difference, recording.nested]).toEqual([1, null, 0])
  expect(again.decisions).toBeGreaterThanOrEqual(8)
  const recorded = recordedPlacements(recording.entries(), ['a', 'b'])
  for (const [uid, placement] of await bound()) expect(recorded.get(uid)).toBe(placement)
})
