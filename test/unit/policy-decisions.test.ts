/** Decisions as values with their reasons, and the preview of a change that they depend on. */
import { expect, it } from 'vitest'
import { judgeSilence } from '../../controller/policy/freeze.ts'
import { decideOldGrowth } from '../../controller/policy/growth.ts'
import { planConfig } from '../../controller/query/preview/impact.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

it('A growth is refused for a noswap task, and lets a swappable task leave to return grown', () => {
  const b = new ClusterBuilder()
  b.addNode({ id: 'n1', gpus: [110] })
  const task = b.submit({ vramMib: 40 })
  b.cycle()
  b.started(task)
  const { placement } = task
  if (placement === null) throw new Error('the task is not placed')
  const entry = {
    kind: 'growth' as const,
    task: placement.task,
    node: placement.node,
    gpus: placement.gpus,
    needMib: 10,
    askedAt: b.now,
    hasReserved: false,
    isCollector: false,
  }
  expect(decideOldGrowth(entry, placement, b.now)).toEqual({ kind: 'return_grown' })
  expect(decideOldGrowth({ ...entry, hasReserved: true }, placement, b.now)).toEqual({ kind: 'wait' })
  expect(decideOldGrowth(entry, { ...placement, noswap: 1 }, b.now)).toEqual({
    kind: 'refuse',
    reason: 'WAITING_PHYSICAL_VRAM',
  })
  expect(decideOldGrowth({ ...entry, needMib: 1_000 }, placement, b.now)).toEqual({
    kind: 'refuse',
    reason: 'RESIDENCY_IMPOSSIBLE',
  })
})

it('Nodes that become silent together are mass silence from 55% of at least four nodes on', () => {
  expect(judgeSilence([0, 1_000, 2_000], 5, 5_000)).toEqual({ isFrozen: true, silentNodes: 3 })
  expect(judgeSilence([0, 1_000, 2_000], 6, 5_000)).toEqual({ isFrozen: false, silentNodes: 3 })
  expect(judgeSilence([0, 1_000, 2_000], 3, 5_000)).toEqual({ isFrozen: false, silentNodes: 3 })
  expect(judgeSilence([0, 20_000, 40_000], 4, 5_000)).toEqual({ isFrozen: false, silentNodes: 1 })
})

it('The preview of a shorter idle period counts a task that fits once the idle victim may leave', () => {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
  b.addNode({ id: 'n1', gpus: [110] })
  const idle = b.submit({ vramMib: 80 })
  b.cycle()
  b.started(idle)
  b.advance(60_000)
  b.submit({ vramMib: 80 })
  b.cycle()
  const wouldFitWith = (seconds: number) => {
    const planned = planConfig(b.cluster, { idle_swap_out_seconds: seconds }, b.now)
    return planned.ok ? planned.value.impact.pending.wouldFit : null
  }
  expect([wouldFitWith(200), wouldFitWith(30)]).toEqual([0, 1])
})
