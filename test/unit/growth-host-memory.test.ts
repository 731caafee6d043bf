/**
 * A growth keeps the promise of admission: above C, host memory has space for every swappable task of the GPU
 * (semantics 1).
 */
import { describe, expect, it } from 'vitest'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

/**
 * One GPU with 100 MiB of capacity and 150 MiB of commit limit; one idle and one running task of 40 MiB each.
 */
function crowded(hostSwapMib: number): { b: ClusterBuilder; grower: ReturnType<ClusterBuilder['submit']> } {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 50 })
  b.addNode({ id: 'n1', gpus: [110], hostSwapMib })
  const [idle, grower] = [b.submit({ vramMib: 40 }), b.submit({ vramMib: 40 })]
  b.cycle()
  b.started(idle, false)
  b.started(grower, true)
  b.advance(300_000)
  b.cycle()
  return { b, grower }
}

describe('a growth beyond the capacity', () => {
  it('swaps out the idle task if host memory has space for all swappable tasks', () => {
    const { b, grower } = crowded(110)
    b.wantsToGrow(grower, 70)
    b.cycle()
    expect(b.effects.map(({ kind }) => kind)).toContain('swap_out')
  })

  it('waits if host memory lacks space, and is refused after a while', () => {
    const { b, grower } = crowded(109)
    b.wantsToGrow(grower, 70)
    b.cycle()
    expect(b.effects.map(({ kind }) => kind)).not.toContain('swap_out')
    expect(placementOf(grower)).toMatchObject({ demandMib: 40, heldGrowth: { mib: 70 } })
    b.advance(300_000)
    b.cycle()
    expect(b.effects.at(-1)).toMatchObject({ kind: 'refuse_growth', reason: 'SWAP_SPACE_EXHAUSTED' })
  })

  it('needs no host memory up to the capacity', () => {
    const { b, grower } = crowded(0)
    b.wantsToGrow(grower, 60)
    b.cycle()
    expect(placementOf(grower).demandMib).toBe(60)
  })
})
