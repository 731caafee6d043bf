import { expect, it } from 'vitest'
import type { LiveTask } from '../../controller/state/facts.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000

it('A growth that host memory cannot cover collects nothing, however long it waits', () => {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    swap_in_aging_seconds: 120,
    idle_swap_out_seconds: 60,
  })
  b.addNode({ id: 'n', gpus: [100], hostSwapMib: 70 })
  const [one, two] = [b.submit({ vramMib: 40 }), b.submit({ vramMib: 40 })]
  b.settle()
  b.wantsToGrow(one, 50)
  b.cycle()
  b.wantsToGrow(two, 51)
  b.cycle()
  b.submit({ vramMib: 5000 })
  b.advance(200 * SECOND)
  expect([placementOf(one).demandMib, placementOf(two).demandMib, b.node('n').collector]).toEqual([
    50,
    40,
    null,
  ])
})

it('A return that backs off after a failed copy collects nothing, and retries after the back-off', () => {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 100,
    swap_in_aging_seconds: 1,
  })
  b.addNode({ id: 'n', gpus: [100] })
  const task = b.submitSwappedOut({ vramMib: 60 })
  b.wants(task, true)
  b.cycle()
  b.swapped(task, true)
  b.submit({ vramMib: 5000 })
  b.cycle()
  b.advance(29 * SECOND)
  expect([placementOf(task).residency, b.node('n').collector]).toEqual(['swapped_out', null])
  b.advance(SECOND)
  expect(placementOf(task).residency).toBe('swapping_in')
})

it('A P0 return for which the collector releases its VRAM gets it before any later entry', () => {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    swap_in_aging_seconds: 100,
    idle_swap_out_seconds: 86_400,
  })
  b.addNode({ id: 'n', gpus: [1000] })
  const away = [{ vramMib: 295 }, { vramMib: 312, priority: 0 as const }, { vramMib: 516 }].map((fields) =>
    b.submitSwappedOut(fields),
  )
  const [aged, urgent, late] = away as [LiveTask, LiveTask, LiveTask]
  const leaving = b.submit({ vramMib: 305 })
  b.submit({ vramMib: 422 })
  b.settle()
  b.wants(aged, true)
  b.cycle()
  b.advance(101 * SECOND)
  expect(b.node('n').collector?.task).toBe(aged)
  b.wants(urgent, true)
  b.wants(late, true)
  b.cycle()
  b.byHand(leaving, 'swap-out')
  b.cycle()
  b.swapped(leaving)
  b.cycle()
  expect([aged, urgent, late].map((task) => placementOf(task).residency)).toEqual([
    'swapped_out',
    'swapping_in',
    'swapped_out',
  ])
})

it('An aged return becomes the collector as soon as a task has started whose VRAM could cover it', () => {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    swap_in_aging_seconds: 1,
  })
  b.addNode({ id: 'n', gpus: [100] })
  const aged = b.submitSwappedOut({ vramMib: 60 })
  const other = b.submit({ vramMib: 90 })
  b.cycle()
  b.wants(aged, true)
  b.cycle()
  b.advance(2 * SECOND)
  expect(b.node('n').collector).toBe(null)
  b.started(other, true)
  b.cycle()
  expect(b.node('n').collector?.task).toBe(aged)
})

it('A head with reserved GPUs becomes the collector there once a higher percentage gives it room', () => {
  const b = new ClusterBuilder({ swap_in_aging_seconds: 600, idle_swap_out_seconds: 86_400 })
  b.addNode({ id: 'n', gpus: [120] })
  const holder = b.submit({ vramMib: 21 })
  b.settle()
  b.wants(holder, false)
  const head = b.submit({ vramMib: 91 })
  b.cycle()
  b.advance(700 * SECOND)
  b.cycle()
  expect([b.node('n').gpus[0]?.reservations[0]?.task, b.node('n').collector]).toEqual([head, null])
  b.configure({ default_vram_overcommit_percent: 100 })
  b.cycle()
  expect(b.node('n').collector?.task).toBe(head)
})

it('Excess VRAM of a releasing collector goes to the first entry, also before the P0 entry', () => {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 300,
    swap_in_aging_seconds: 100,
    idle_swap_out_seconds: 86_400,
  })
  b.addNode({ id: 'n', gpus: [1000] })
  const away = [
    { vramMib: 300 },
    { vramMib: 40 },
    { vramMib: 60, priority: 0 as const },
    { vramMib: 40 },
  ].map((fields) => b.submitSwappedOut(fields))
  const [collects, aged, urgent, late] = away as [LiveTask, LiveTask, LiveTask, LiveTask]
  b.submit({ vramMib: 895 })
  b.settle()
  b.wants(collects, true)
  b.cycle()
  b.advance(101 * SECOND)
  b.wants(aged, true)
  b.cycle()
  b.advance(101 * SECOND)
  expect(b.node('n').collector?.task).toBe(collects)
  b.wants(urgent, true)
  b.wants(late, true)
  b.cycle()
  expect(away.map((task) => placementOf(task).residency)).toEqual([
    'swapped_out',
    'swapping_in',
    'swapping_in',
    'swapped_out',
  ])
})

it('A head becomes the collector as soon as a noswap task in its way becomes swappable', () => {
  const b = new ClusterBuilder({
    default_vram_overcommit_percent: 100,
    swap_in_aging_seconds: 600,
    idle_swap_out_seconds: 86_400,
  })
  b.addNode({ id: 'n', gpus: [120] })
  const holder = b.submit({ vramMib: 40, noswap: 1 })
  b.settle()
  const head = b.submit({ vramMib: 91 })
  b.cycle()
  b.advance(700 * SECOND)
  b.cycle()
  expect([b.node('n').gpus[0]?.reservations[0]?.task, b.node('n').collector]).toEqual([head, null])
  b.update(holder, { noswap: 0 })
  b.cycle()
  expect(b.node('n').collector?.task).toBe(head)
})

it('A head releases a node that has left its pool and reserves another', () => {
  const b = new ClusterBuilder()
  for (const id of ['m', 'n']) b.addNode({ id, gpus: [120] })
  b.submit({ vramMib: 60 })
  b.submit({ vramMib: 70 })
  b.settle()
  const head = b.submit({ vramMib: 91 })
  b.cycle()
  b.advance(700 * SECOND)
  b.cycle()
  const heldIn = () =>
    ['m', 'n'].filter((id) => b.node(id).gpus[0]?.reservations.some(({ task }) => task === head))
  const [first] = heldIn()
  b.group('g', [first as string])
  b.cycle()
  expect(heldIn()).toEqual(['m', 'n'].filter((id) => id !== first))
})

it('A head moves to other GPUs of its node when an earlier entry used the GPUs that it reserved', () => {
  const b = new ClusterBuilder()
  b.addNode({ id: 'n', gpus: [120, 120, 120] })
  for (const vramMib of [60, 60, 51]) b.submit({ vramMib })
  b.settle()
  const head = b.submit({ vramMib: 65, gpuCount: 2, priority: 3 })
  b.cycle()
  b.advance(400 * SECOND)
  b.cycle()
  const held = () =>
    b.node('n').gpus.filter(({ reservations }) => reservations.some(({ task }) => task === head))
  expect(held().map(({ index }) => index)).toEqual([0, 2])
  const urgent = b.submit({ vramMib: 40, priority: 0 })
  b.cycle()
  expect(placementOf(urgent).gpus.map(({ index }) => index)).toEqual([0])
  expect(held().map(({ index }) => index)).toEqual([1, 2])
})
