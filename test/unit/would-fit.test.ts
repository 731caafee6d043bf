/** Changes that would place a task, where another task gives way to it. */
import { expect, it } from 'vitest'
import { wouldFitIf } from '../../controller/query/preview/would-fit.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

it('A P0 task needs the smallest change after which the collector of a node would yield to it', () => {
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
