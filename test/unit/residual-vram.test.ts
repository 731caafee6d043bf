/**
 * What a task keeps in VRAM while it is swapped out stays counted (semantics 1, r): it is not free, no victim
 * gives it, no return asks for it, and a noswap task must leave room for it.
 */
import { describe, expect, it } from 'vitest'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

/** One GPU with 100 MiB of capacity; `first` (60) is swapped out for `second` (70) and keeps a part. */
function swappedOut(residualMib: number) {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100, eager_swap_in_seconds: null })
  const node = b.addNode({ id: 'n1', gpus: [110] })
  const first = b.submit({ vramMib: 60 })
  b.cycle()
  b.started(first, false)
  b.advance(300_000)
  const second = b.submit({ vramMib: 70 })
  b.cycle()
  b.swapped(first, false, false, residualMib)
  b.cycle()
  const [gpu] = node.gpus
  if (gpu === undefined) throw new Error('no GPU')
  return { b, first, second, gpu, node }
}

describe('a task that keeps a part of its VRAM while it is out', () => {
  it('keeps that part counted as noswap, and leaves the rest to the next task', () => {
    const { b, first, second, gpu, node } = swappedOut(6)
    b.started(second, true)
    expect(placementOf(first)).toMatchObject({ residency: 'swapped_out', demandMib: 60, residualMib: 6 })
    expect(placementOf(second).residency).toBe('resident')
    expect(gpu).toMatchObject({
      noswapMib: 6,
      noswapResidentMib: 6,
      swappableMib: 54 + 70,
      swappableResidentMib: 70,
      largestSwappableMib: 70,
      freeMib: 24,
    })
    expect(node.hostUsedMib).toBe(54)
  })

  it('returns when the rest fits, and leaves again with the rest only', () => {
    const { b, first, second, gpu } = swappedOut(6)
    b.started(second, false)
    b.wants(first, true)
    expect(placementOf(first).entry).toMatchObject({ kind: 'swap_in', needMib: 54 })
    b.advance(300_000)
    b.cycle()
    b.swapped(second)
    b.cycle()
    b.swapped(first)
    expect(placementOf(first)).toMatchObject({ residency: 'resident', residualMib: 6 })
    expect(gpu).toMatchObject({ noswapMib: 6, swappableResidentMib: 54, freeMib: 40, movingOutMib: 0 })
    b.wants(first, false)
    b.advance(300_000)
    b.cycle()
    expect(gpu.eligibleMib).toBe(54)
  })

  it('tells of a reported swap-out with the part that was kept this time', () => {
    const { b, first, second } = swappedOut(6)
    b.wants(first, true)
    b.finished(second)
    b.cycle()
    b.swapped(first)
    b.cycle()
    const { attempt, generation } = placementOf(first)
    b.hello(b.node('n1'), {
      tasks: [
        {
          task_id: first.spec.id,
          attempt,
          residency: 'swapped_out',
          generation: generation + 2,
          residual_mib: 10,
          gpus: [0],
          vram_mib: 60,
          wants_gpu: false,
          idle_ms: 0,
        },
      ],
    })
    const told = b.cycle().filter(({ kind }) => kind === 'task_residency')
    expect(told.map(({ data }) => data)).toMatchObject([{ residency: 'swapped_out', residual_mib: 10 }])
  })

  it('does not make room for a task that needs that part too', () => {
    const { b, second } = swappedOut(40)
    expect(second).toMatchObject({ state: 'pending' })
    expect(b.explain(second)?.primary.reason).not.toBe('SWAPPING_OUT_FOR_YOU')
  })

  it('leaves less to a noswap task, which must not strand the others', () => {
    const { b, second } = swappedOut(6)
    b.started(second, true)
    const [fits, strands] = [b.submit({ vramMib: 24, noswap: 1 }), b.submit({ vramMib: 25, noswap: 1 })]
    b.cycle()
    expect([fits.state, strands.state]).toEqual(['assigned', 'pending'])
  })

  it('is measured at each swap-out, and not at all once it has ended', () => {
    const { b, first, second, gpu, node } = swappedOut(6)
    b.started(second, false)
    b.wants(first, true)
    b.advance(300_000)
    b.cycle()
    b.swapped(second, false, false, 3)
    b.cycle()
    b.swapped(first)
    b.wants(first, false)
    b.wants(second, true)
    b.advance(300_000)
    b.cycle()
    b.swapped(first)
    b.cycle()
    expect(placementOf(first)).toMatchObject({ residency: 'swapped_out', residualMib: 0 })
    expect(gpu).toMatchObject({ noswapMib: 3, swappableMib: 60 + 67 })
    b.finished(first)
    b.swapped(second)
    b.finished(second)
    expect(gpu).toMatchObject({ noswapMib: 0, noswapResidentMib: 0, swappableMib: 0, freeMib: 100 })
    expect(node.hostUsedMib).toBe(0)
  })
})
