/** Changes that would place a task, and where it would go, if another task gives way to it. */
import { expect, it } from 'vitest'
import { predictPlacement } from '../../controller/query/preview/prediction.ts'
import { wouldFitIf } from '../../controller/query/preview/would-fit.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

/** The oldest pending task has n0 reserved as its collector, and waits for a task that works there. */
function withCollector(): { readonly b: ClusterBuilder; readonly collector: LiveTask } {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 300, max_residency_seconds: null })
  b.addNode({ id: 'n0', gpus: [120] })
  b.addNode({ id: 'n1', gpus: [100] })
  b.submit({ vramMib: 41 })
  b.cycle()
  const working = b.submit({ vramMib: 54 })
  b.cycle()
  const collector = b.submit({ vramMib: 57, priority: 1 })
  b.cycle()
  b.advance(700_000)
  b.started(working)
  b.cycle()
  return { b, collector }
}

it('A dry run of a P0 task sees that the collector of a node would yield to it', () => {
  const { b, collector } = withCollector()
  expect(collector.placementEntry).toMatchObject({ isCollector: true, node: { id: 'n0' } })
  const { spec } = b.submit({ vramMib: 400 })
  const request = { ...spec, vramMib: 50, id: null, priority: 0 as const, maxRuntimeSeconds: null }
  expect(predictPlacement(b.cluster, request, b.now)).toMatchObject({
    value: { when: 'now', node: { id: 'n0' }, gpus: [{ index: 0 }], victims: [], wait: null },
  })
  const urgent = b.submit({ vramMib: 50, priority: 0 })
  b.cycle()
  expect(urgent.placement?.node.id).toBe('n0')
})

it('A P0 task needs the smallest change after which the collector of a node would yield to it', () => {
  const { b, collector } = withCollector()
  const urgent = b.submit({ vramMib: 57, priority: 0 })
  b.cycle()
  expect(collector.placementEntry).toMatchObject({ isCollector: true, node: { id: 'n0' } })

  const { changes } = wouldFitIf(b.cluster, urgent, b.now)
  expect(changes.filter(({ change }) => change === 'reserve')).toMatchObject([
    { scope: 'cluster', from: 10, to: 9, node: { id: 'n0' } },
    { scope: 'node', from: 10, to: 9, node: { id: 'n0' } },
  ])
  b.configure({ safety_reserve_mib: 9 })
  b.cycle()
  expect(urgent.placement?.node.id).toBe('n0')
})
