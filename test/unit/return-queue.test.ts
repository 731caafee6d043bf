/** The order of a node's queue, and which VRAM counts as reserved (semantics 5, "Return"). */
import { expect, it } from 'vitest'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000

function clusterOf(mib: number, config: Partial<ConfigFields> = {}): ClusterBuilder {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    swap_in_aging_seconds: 100,
    idle_swap_out_seconds: 60,
    ...config,
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

it('A return that has waited long keeps later tasks from its GPU while another task becomes resident', () => {
  for (const isFree of [true, false]) {
    const b = clusterOf(1000, { reservation_after_seconds: 30, swap_in_aging_seconds: 86_400 })
    const [large, next] = [b.submitSwappedOut({ vramMib: 698 }), b.submitSwappedOut({ vramMib: 400 })]
    const [busy, idle] = [b.submit({ vramMib: 400 }), b.submit({ vramMib: isFree ? 100 : 300 })]
    b.settle()
    b.wants(busy, true)
    b.wants(large, true)
    b.cycle()
    b.advance(60 * SECOND)
    b.wants(next, true)
    b.cycle()
    const later = b.submit({ vramMib: 50 })
    b.cycle()
    expect([next, idle].map((task) => placementOf(task).residency)).toEqual(
      isFree ? ['swapping_in', 'resident'] : ['swapped_out', 'swapping_out'],
    )
    const reserved = b.node('n').gpus[0]?.reservations.map(({ task }) => task.spec.id)
    expect([later.state, reserved]).toEqual(['pending', [large.spec.id]])
  }
})

it('VRAM that the growth of a victim releases goes to the first entry in the queue', () => {
  const b = clusterOf(100)
  const away = [31, 20, 32].map((vramMib) => b.submitSwappedOut({ vramMib }))
  const [first, second, third] = away as [LiveTask, LiveTask, LiveTask]
  const [grows, leaves, idle, busy] = [20, 30, 10, 40].map((vramMib) => b.submit({ vramMib }))
  b.settle()
  b.wants(busy as LiveTask, true)
  b.advance(60 * SECOND)
  b.wantsToGrow(grows as LiveTask, 50)
  b.cycle()
  expect(placementOf(leaves as LiveTask).residency).toBe('swapping_out')
  for (const task of away) b.wants(task, true)
  b.cycle()
  const leavesFor = [grows, idle].map((task) => placementOf(task as LiveTask).leavesFor?.task.spec.id)
  expect(leavesFor).toEqual([second.spec.id, first.spec.id])
  expect(placementOf(third).entry?.hasReserved).toBe(false)
})
