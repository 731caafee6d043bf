/**
 * An allocation that can never be granted is refused at once, not after `reservation_after_seconds`
 * (semantics 1, "growth").
 */
import { describe, expect, it } from 'vitest'
import { limitsOfBody } from '../../protocol/resource-limits.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

/** A task of 40 MiB on each of these GPUs, with a reserve of 10 MiB. */
function running(gpus: readonly number[], gpuCount: number, limitMib: number | null = null) {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 300 })
  b.cluster.eventLog.keepsDecisions = true
  b.addNode({ id: 'n1', gpus, features: ['vram_limit'] })
  const limits = limitMib === null ? {} : { limits: limitsOfBody({ vram_limit_mib: limitMib }) }
  const task = b.submit({ vramMib: 40, gpuCount, name: 'grower', ...limits })
  b.settle()
  return { b, task }
}

describe('A growth beyond the capacity of a GPU less its reserve', () => {
  it('is refused in the same cycle, and the task keeps its VRAM', () => {
    const { b, task } = running([110], 1)
    b.wantsToGrow(task, 101)
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({ kind: 'refuse_growth', mib: 40, reason: 'NEVER_FITS' })
    expect(b.events.at(-1)).toMatchObject({
      kind: 'growth_refused',
      data: { attempt: 1, reason: 'NEVER_FITS' },
    })
    expect(placementOf(task)).toMatchObject({ demandMib: 40, heldGrowth: null, entry: null })
    expect(b.decisions.at(-1)).toMatchObject({ kind: 'growth_refused', rule: 'larger_than_gpu' })
    expect(b.decisions.at(-1)?.sentence).toBe(
      'grower does not get 101 MiB on GPU 0 of n1: at most 100 MiB fit there next to the reserve ' +
        '(NEVER_FITS).',
    )
  })

  it('is refused if the smallest of its GPUs lacks the capacity', () => {
    const { b, task } = running([110, 90], 2)
    b.wantsToGrow(task, 81)
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({ kind: 'refuse_growth', reason: 'NEVER_FITS' })
  })

  it('also cancels an earlier request that still waits', () => {
    const { b, task } = running([110], 1)
    const other = b.submit({ vramMib: 60 })
    b.settle()
    b.wants(other, true)
    b.wantsToGrow(task, 90)
    b.cycle()
    expect(placementOf(task).entry?.kind).toBe('growth')
    b.wantsToGrow(task, 101)
    b.cycle()
    expect(placementOf(task)).toMatchObject({ heldGrowth: null, entry: null })
  })

  it('is granted up to exactly that capacity', () => {
    const { b, task } = running([110], 1)
    b.wantsToGrow(task, 100)
    b.cycle()
    expect(placementOf(task).demandMib).toBe(100)
  })
})

describe('A growth beyond the limit of VRAM of the task', () => {
  it('is refused in the same cycle, although the GPU has room', () => {
    const { b, task } = running([110], 1, 60)
    b.wantsToGrow(task, 61)
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({ kind: 'refuse_growth', mib: 40, reason: 'VRAM_LIMIT' })
    expect(placementOf(task)).toMatchObject({ demandMib: 40, heldGrowth: null, entry: null })
    expect(b.decisions.at(-1)).toMatchObject({ kind: 'growth_refused', rule: 'above_vram_limit' })
    expect(b.decisions.at(-1)?.sentence).toBe(
      'grower does not get 61 MiB on GPU 0 of n1: its own limit (vram_limit_mib) is 60 MiB (VRAM_LIMIT).',
    )
  })

  it('is granted up to exactly that limit', () => {
    const { b, task } = running([110], 1, 60)
    b.wantsToGrow(task, 60)
    b.cycle()
    expect(placementOf(task).demandMib).toBe(60)
  })
})
