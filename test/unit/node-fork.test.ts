/** A change that is tried on a copy of a node concerns the copy alone. */
import { describe, expect, it } from 'vitest'
import { eligibleOn } from '../../controller/policy/swap/eligible.ts'
import { applyEligibility, endTaskOn, forkNode } from '../../controller/state/snapshot/node-fork.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

/** One GPU with two idle tasks that are eligible, because a third one waits for their VRAM. */
function crowded() {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100, eager_swap_in_seconds: null })
  const node = b.addNode({ id: 'n1', gpus: [110] })
  const idle = [b.submit({ vramMib: 40 }), b.submit({ vramMib: 50 })] as const
  b.cycle()
  for (const task of idle) b.started(task, false)
  const waiting = b.submit({ vramMib: 105 })
  b.advance(300_000)
  b.cycle()
  const idsOn = (gpus: typeof node.gpus) =>
    gpus.flatMap((gpu) => eligibleOn(gpu, waiting, b.now, Infinity)).map(({ id }) => id)
  return { b, node, idle, idsOn }
}

describe('the eligible victims of a copied node', () => {
  it('lack a task that was ended on the copy; the node keeps it', () => {
    const { b, node, idle, idsOn } = crowded()
    const before = idsOn(node.gpus)
    const fork = forkNode(node)
    endTaskOn(fork, idle[0], b.cluster.policy)
    expect(before).toContain(idle[0].spec.id)
    expect(idsOn(fork.gpus)).toEqual(before.filter((id) => id !== idle[0].spec.id))
    expect(idsOn(node.gpus)).toEqual(before)
  })

  it('follow another idle period on the copy only', () => {
    const { b, node, idsOn } = crowded()
    const before = idsOn(node.gpus)
    const fork = forkNode(node)
    applyEligibility(fork, { ...b.cluster.policy, idlePeriodMs: 600_000 }, b.now)
    expect(idsOn(fork.gpus)).toEqual([])
    applyEligibility(fork, b.cluster.policy, b.now)
    expect(new Set(idsOn(fork.gpus))).toEqual(new Set(before))
    expect(idsOn(node.gpus)).toEqual(before)
  })
})
