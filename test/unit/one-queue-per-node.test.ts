/**
 * One queue per node (semantics 5): pending tasks and returns are served in one order, P0 first, then by
 * request time.
 */
import { describe, expect, it } from 'vitest'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { LiveTask } from '../../controller/state/facts.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

const SECOND = 1000
const IDLE_S = 60
const AGING_S = 600

interface Scene {
  readonly b: ClusterBuilder
  /** Resident and busy; 60 MiB of a GPU of 100 MiB. */
  readonly holder: LiveTask
  /** Swapped out, 60 MiB. */
  readonly away: LiveTask
}

function scene(config: Partial<ConfigFields> = {}): Scene {
  const b = new ClusterBuilder({
    safety_reserve_mib: 0,
    default_vram_overcommit_percent: 1000,
    idle_swap_out_seconds: IDLE_S,
    swap_in_aging_seconds: AGING_S,
    reservation_after_seconds: 86_400,
    eager_swap_in_seconds: null,
    ...config,
  })
  b.addNode({ id: 'n', gpus: [100] })
  const away = b.submitSwappedOut({ vramMib: 60 })
  const holder = b.submit({ vramMib: 60 })
  b.settle()
  b.wants(holder, true)
  b.cycle()
  return { b, holder, away }
}

/** Makes the holder idle: it becomes eligible one idle period later. */
function freeHolder({ b, holder }: Scene): void {
  b.wants(holder, false)
  b.cycle()
  b.advance(IDLE_S * SECOND)
  b.cycle()
}

/** The task for which the holder is swapped out, or null if it stays. */
function leavesFor({ holder }: Scene): LiveTask | null {
  return placementOf(holder).leavesFor?.task ?? null
}

const P0: Partial<TaskRequest> = { priority: 0 }

describe('the queue of a node', () => {
  it('serves a pending P0 task before an earlier P2 return', () => {
    const s = scene()
    s.b.wants(s.away, true)
    s.b.cycle()
    s.b.advance(5 * SECOND)
    const urgent = s.b.submit({ vramMib: 60, ...P0 })
    s.b.cycle()
    freeHolder(s)
    expect(leavesFor(s)).toBe(urgent)
  })

  it('serves a pending P2 task before a later return, and after an earlier one', () => {
    for (const isFirst of [true, false]) {
      const s = scene()
      const ask = (): void => s.b.wants(s.away, true)
      if (!isFirst) ask()
      s.b.advance(SECOND)
      const pending = s.b.submit({ vramMib: 60 })
      s.b.cycle()
      s.b.advance(SECOND)
      if (isFirst) ask()
      s.b.cycle()
      freeHolder(s)
      expect(leavesFor(s)).toBe(isFirst ? pending : s.away)
    }
  })

  it('serves a return that has waited swap_in_aging_seconds before a later P0 task', () => {
    const s = scene({ swap_in_aging_seconds: 30 })
    s.b.wants(s.away, true)
    s.b.cycle()
    s.b.advance(10 * SECOND)
    s.b.submit({ vramMib: 60, ...P0 })
    s.b.cycle()
    s.b.advance(25 * SECOND)
    // It is the node's collector because it was first; it releases VRAM only for a P0 task that would
    // otherwise be covered.
    expect(s.b.node('n').collector?.task).toBe(s.away)
  })

  it('serves a return that fits even if an earlier pending task does not', () => {
    const s = scene()
    s.b.submit({ vramMib: 90, ...P0 })
    const busy = s.b.submit({ vramMib: 30 })
    s.b.settle()
    s.b.wants(busy, true)
    s.b.wants(s.away, true)
    s.b.cycle()
    freeHolder(s)
    expect(leavesFor(s)).toBe(s.away)
  })

  it('considers the first pending task of each shape in queue order, P0 tasks first', () => {
    const s = scene()
    const first = s.b.submit({ vramMib: 60, priority: 1 })
    s.b.submit({ vramMib: 60 })
    s.b.advance(SECOND)
    s.b.wants(s.away, true)
    s.b.cycle()
    freeHolder(s)
    expect(leavesFor(s)).toBe(first)
  })

  it('leaves the node to a return if the earlier pending task now fits on another node', () => {
    const s = scene()
    s.b.wants(s.away, true)
    s.b.cycle()
    const urgent = s.b.submit({ vramMib: 60, ...P0 })
    s.b.cycle()
    s.b.wants(s.holder, false)
    s.b.cycle()
    s.b.advance(IDLE_S * SECOND - 1)
    s.b.addNode({ id: 'other', gpus: [100] })
    s.b.advance(1)
    s.b.cycle()
    expect(placementOf(urgent).node.id).toBe('other')
    expect(leavesFor(s)).toBe(s.away)
  })

  it('keeps strict order under fifo: only the head of the pool takes part', () => {
    const s = scene({ placement_strategy: 'fifo' })
    s.b.submit({ vramMib: 99, noswap: 1 })
    s.b.advance(SECOND)
    s.b.submit({ vramMib: 60 })
    s.b.advance(SECOND)
    s.b.wants(s.away, true)
    s.b.cycle()
    freeHolder(s)
    expect(leavesFor(s)).toBe(s.away)
  })

  it('lets an entry keep its reserved VRAM when a P0 task arrives later', () => {
    const s = scene()
    s.b.wants(s.away, true)
    s.b.cycle()
    freeHolder(s)
    const urgent = s.b.submit({ vramMib: 60, ...P0 })
    s.b.cycle()
    s.b.swapped(s.holder)
    s.b.cycle()
    expect([placementOf(s.away).residency, urgent.placement]).toEqual(['swapping_in', null])
  })

  it('makes a collector release VRAM for a pending P0 task that fits nowhere else', () => {
    const s = scene({ swap_in_aging_seconds: 10 })
    s.b.wants(s.away, true)
    s.b.cycle()
    s.b.advance(11 * SECOND)
    expect(s.b.node('n').collector?.task).toBe(s.away)
    const urgent = s.b.submit({ vramMib: 30, ...P0 })
    s.b.cycle()
    expect(placementOf(urgent).residency).toBe('none')
  })

  it('lets a collector keep its VRAM if another node can take the pending P0 task', () => {
    const s = scene({ swap_in_aging_seconds: 10 })
    s.b.addNode({ id: 'other', gpus: [50] })
    s.b.wants(s.away, true)
    s.b.cycle()
    s.b.advance(11 * SECOND)
    const urgent = s.b.submit({ vramMib: 30, ...P0 })
    s.b.cycle()
    expect(placementOf(urgent).node.id).toBe('other')
    expect(s.b.node('n').collector?.task).toBe(s.away)
  })
})

describe('the explanation of a queue entry', () => {
  it('counts the entries before a return, including pending tasks that wait for VRAM there', () => {
    const s = scene()
    const other = s.b.submitSwappedOut({ vramMib: 30 })
    s.b.submit({ vramMib: 60, ...P0 })
    s.b.wants(s.holder, true)
    s.b.submit({ vramMib: 40 })
    s.b.settle()
    s.b.advance(SECOND)
    s.b.wants(other, true)
    s.b.cycle()
    s.b.advance(SECOND)
    s.b.wants(s.away, true)
    s.b.cycle()
    const wait = s.b.explain(s.away)
    expect(wait).toMatchObject({ primary: { reason: 'NO_ELIGIBLE_VICTIM' }, servedBefore: 2 })
    expect(wait?.sentence).toContain(' 2 other tasks are served first on that node.')
  })

  it('counts the entries before a pending task on its closest node, and none before a P0 task', () => {
    const s = scene()
    s.b.wants(s.away, true)
    s.b.cycle()
    s.b.advance(SECOND)
    const pending = s.b.submit({ vramMib: 60 })
    s.b.cycle()
    expect(s.b.explain(pending)).toMatchObject({ primary: { reason: 'NO_ELIGIBLE_VICTIM' }, servedBefore: 1 })
    expect(s.b.explain(pending)?.sentence).toContain(' Another task is served first on that node.')
    s.b.update(pending, { priority: 0 })
    s.b.cycle()
    expect(s.b.explain(pending)).toMatchObject({ primary: { reason: 'NO_ELIGIBLE_VICTIM' }, servedBefore: 0 })
    expect(s.b.explain(s.away)).toMatchObject({ servedBefore: 1 })
  })

  it('counts none before an entry with reserved VRAM', () => {
    const s = scene()
    s.b.wants(s.away, true)
    s.b.cycle()
    freeHolder(s)
    s.b.submit({ vramMib: 60, ...P0 })
    s.b.cycle()
    expect(s.b.explain(s.away)).toMatchObject({
      primary: { reason: 'SWAPPING_OUT_FOR_YOU' },
      servedBefore: 0,
    })
  })
})
