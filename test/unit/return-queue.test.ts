/** The order of a node's queue, and which VRAM counts as reserved (semantics 5, "Return"). */
import { expect, it } from 'vitest'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000

function clusterOf(mib: number): ClusterBuilder {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    swap_in_aging_seconds: 100,
    idle_swap_out_seconds: 60,
  })
  b.addNode({ id: 'n', gpus: [mib] })
  return b
}

it('A task that has waited long returns before a later P0 task, even without victims', () => {
  const b = clusterOf(100)
  const [aged, urgent] = [
    b.submitSwappedOut({ vramMib: 60 }),
    b.submitSwappedOut({ vramMib: 60, priority: 0 }),
  ]
  const holder = b.submit({ vramMib: 60, priority: 0 })
  b.settle()
  b.wants(holder, true)
  b.wants(aged, true)
  b.cycle()
  b.advance(50 * SECOND)
  b.wants(urgent, true)
  b.cycle()
  // Only P0 tasks block the first entry, so it does not become the collector.
  b.advance(50 * SECOND)
  expect(b.node('n').collector).toBeNull()
  b.finished(holder)
  b.cycle()
  expect([aged, urgent].map((task) => placementOf(task).residency)).toEqual(['swapping_in', 'swapped_out'])
})

it('A P0 task returns before an earlier task that has not waited long', () => {
  const b = clusterOf(100)
  const [early, urgent] = [
    b.submitSwappedOut({ vramMib: 60 }),
    b.submitSwappedOut({ vramMib: 60, priority: 0 }),
  ]
  const holder = b.submit({ vramMib: 60, priority: 0 })
  b.settle()
  b.wants(holder, true)
  b.wants(early, true)
  b.cycle()
  b.advance(50 * SECOND)
  b.wants(urgent, true)
  b.cycle()
  b.finished(holder)
  b.cycle()
  expect([early, urgent].map((task) => placementOf(task).residency)).toEqual(['swapped_out', 'swapping_in'])
})

it('A waiting task does not count on VRAM reserved for another, so its victim leaves at once', () => {
  const b = clusterOf(100)
  const [owner, second] = [b.submitSwappedOut({ vramMib: 60 }), b.submitSwappedOut({ vramMib: 40 })]
  const [large, small] = [b.submit({ vramMib: 60 }), b.submit({ vramMib: 30 })]
  b.settle()
  b.advance(60 * SECOND)
  b.wants(owner, true)
  b.cycle()
  expect([large, small].map((task) => placementOf(task).residency)).toEqual(['swapping_out', 'resident'])
  b.wants(second, true)
  b.cycle()
  expect(placementOf(small).residency).toBe('swapping_out')
  b.settle()
  expect([owner, second].map((task) => placementOf(task).residency)).toEqual(['resident', 'resident'])
})
