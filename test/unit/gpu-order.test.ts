/** The GPU of a task that fits only after a swap (docs/decisions/0011 and 0097). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Gpu } from '../../controller/model/placement.ts'
import type { LiveGpu } from '../../controller/state/facts.ts'
import { largestAfterSwapMib, largestNowMib } from '../../controller/policy/placement/feasible.ts'
import { byScore } from '../../controller/policy/placement/score.ts'
import { shapeOf } from '../../controller/policy/placement/shape.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { applyStep, buildFleet, ClusterBuilder, fleetShapeArb, stepsArb } from '../support/cluster-builder.ts'
import { holds } from '../support/drawn-cases.ts'

/** GPUs of 100 MiB, of which tasks may use 90 MiB; the commit limit is 200 MiB. */
function overcommitted(gpus: readonly number[]): ClusterBuilder {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100, placement_strategy: 'best_fit' })
  b.addNode({ id: 'n1', gpus })
  return b
}

describe('the GPU of a task that fits after a swap', () => {
  it('is the one with the least commit room if enough VRAM is being freed on several GPUs', () => {
    const b = overcommitted([100, 100])
    const [large, middle] = [
      b.submit({ vramMib: 80, name: 'large' }),
      b.submit({ vramMib: 60, name: 'middle' }),
    ]
    b.settle()
    const small = b.submit({ vramMib: 30, name: 'small' })
    b.settle()
    expect([large, middle, small].map(({ placement }) => placement?.gpus.map(({ index }) => index))).toEqual([
      [0],
      [1],
      [1],
    ])
    for (const task of [large, middle]) expect(b.byHand(task, 'swap-out')).toBeNull()
    b.cycle()
    // GPU 0 will have 90 MiB free and 120 MiB of commit room, GPU 1 has 60 and 110.
    const next = b.submit({ vramMib: 50, name: 'next' })
    b.cycle()
    expect(next.placementEntry?.gpus.map(({ index }) => index)).toEqual([1])
  })

  it('is the one with the smallest shortfall if too little VRAM is being freed everywhere', () => {
    const b = overcommitted([100, 100])
    for (const vramMib of [80, 60, 30]) {
      b.submit({ vramMib })
      b.settle()
    }
    b.advance(400_000)
    const next = b.submit({ vramMib: 70 })
    b.cycle()
    expect(next.placementEntry?.gpus.map(({ index }) => index)).toEqual([0])
  })

  it('is chosen in the same way for several GPUs of one node', () => {
    const b = overcommitted([100, 100, 100])
    const idle = [80, 80, 60].map((vramMib) => b.submit({ vramMib }))
    b.settle()
    b.submit({ vramMib: 30 })
    b.settle()
    for (const task of idle) b.byHand(task, 'swap-out')
    b.cycle()
    const next = b.submit({ vramMib: 50, gpuCount: 2 })
    b.cycle()
    expect(new Set(next.placementEntry?.gpus.map(({ index }) => index))).toEqual(new Set([0, 2]))
  })
})

describe('the GPUs of a pool that admit a demand after a swap', () => {
  it('are offered in the order of their scores, whatever has happened', () => {
    const property = fc.property(
      fleetShapeArb,
      stepsArb(40),
      fc.integer({ min: 1, max: 110 }),
      fc.boolean(),
      (fleet, steps, mib, isP0) => {
        const b = buildFleet(fleet)
        for (const step of steps) {
          applyStep(b, step)
          b.cycle()
          b.cluster.deriveFigures()
          const { policy } = b.cluster
          const shape = shapeOf({ ...TASK_DEFAULTS, priority: isP0 ? 0 : 2, groups: [] } as never)
          const pool = b.cluster.poolFor(shape.poolKey)
          const admits = (gpu: LiveGpu) =>
            Math.max(
              largestNowMib(gpu, 'swappable', policy.maxTasksPerGpu),
              largestAfterSwapMib(gpu, 'swappable', isP0, policy.maxTasksPerGpu),
            )
          const expected = b.gpus
            .filter((gpu) => pool.nodes.has(gpu.node) && gpu.reservations.length === 0 && admits(gpu) >= mib)
            .sort((one, other) => byScore(one, other, 'after_swap', policy.strategy, mib))
          expect([...pool.gpusFor(shape, 'after_swap', mib)].map(nameOf)).toEqual(expected.map(nameOf))
        }
      },
    )
    holds(property, 150, 'test/unit/gpu-order.test.ts')
  })
})

function nameOf({ node, index }: Gpu): string {
  return `${node.name}:${index}`
}
