import { expect, it } from 'vitest'
import { applyCommandResult, applyNodeEvent } from '../../controller/engine/inputs/nodes/node-events.ts'
import { explainVictim } from '../../controller/query/explain/explain-victim.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

/** Creates one GPU of 100 MiB; `a` is idle and being swapped out for `b`. */
function oneIsLeaving() {
  const cluster = new ClusterBuilder({ safety_reserve_mib: 0, default_vram_overcommit_percent: 100 })
  const node = cluster.addNode({ id: 'n', gpus: [100] })
  const a = cluster.submit({ vramMib: 60 })
  cluster.settle()
  cluster.advance(300_000)
  const b = cluster.submit({ vramMib: 60 })
  cluster.cycle()
  expect(placementOf(a).residency).toBe('swapping_out')
  return { cluster, node, a, b }
}

it('A task that its server reports as not swappable is noswap from then on, and never a victim', () => {
  const { cluster, node, a, b } = oneIsLeaving()
  const event = {
    kind: 'residency',
    n: 0,
    task_id: a.spec.id,
    attempt: 1,
    residency: 'resident',
    generation: 2,
    because: 'not_swappable',
    detail: 'it uses managed memory',
  } as const
  applyNodeEvent(cluster.cluster, node.id, event, cluster.now)
  const events = cluster.cycle()
  expect(explainVictim(cluster.cluster, placementOf(a), cluster.now)).toMatchObject({
    standing: 'NOSWAP',
    sentence: 'It is never swapped out: n cannot swap it (it uses managed memory).',
  })
  expect(placementOf(a)).toMatchObject({ residency: 'resident', noswap: 1 })
  expect(node.gpus[0]).toMatchObject({ noswapMib: 60, swappableMib: 0 })
  expect(events.map(({ kind }) => kind)).toContain('task_became_noswap')
  cluster.advance(3_600_000)
  cluster.cycle()
  expect(placementOf(a).residency).toBe('resident')
  expect(cluster.explain(b)?.primary.reason).toBe('NEVER_RESIDENT')
})

it('A task whose swap-out is refused as noswap is noswap from then on', () => {
  const { cluster, node, a } = oneIsLeaving()
  const result = {
    op: 'result',
    task_id: a.spec.id,
    attempt: 1,
    outcome: 'refused',
    reason: 'noswap',
    residency: 'resident',
    generation: 1,
  } as const
  applyCommandResult(cluster.cluster, node.id, 'swap_out', result, node.snapshotSeq, cluster.now)
  expect(placementOf(a)).toMatchObject({ residency: 'resident', noswap: 1 })
})

it('A swap that failed for another reason leaves the task swappable', () => {
  const { cluster, node, a } = oneIsLeaving()
  const event = {
    kind: 'residency',
    n: 0,
    task_id: a.spec.id,
    attempt: 1,
    residency: 'resident',
    generation: 2,
    because: 'copy_failed',
  } as const
  applyNodeEvent(cluster.cluster, node.id, event, cluster.now)
  expect(placementOf(a).noswap).toBe(0)
})
