import { expect, it } from 'vitest'
import { eligibleOn, eligibleVictimsMib } from '../../controller/policy/swap/eligible.ts'
import type { LiveGpu } from '../../controller/state/facts.ts'
import { ClusterBuilder, placementOf } from '../support/cluster-builder.ts'

it('A task that does not fit in the free host memory is not a candidate for a swap-out', () => {
  const b = new ClusterBuilder({ default_vram_overcommit_percent: 100 })
  const node = b.addNode({ id: 'n', gpus: [110, 110] })
  const [single, double] = [b.submit({ vramMib: 40 }), b.submit({ vramMib: 30, gpuCount: 2 })]
  b.cycle()
  for (const task of [single, double]) b.started(task)
  b.advance(300_000)
  b.cycle()
  const requester = b.submit({ vramMib: 60 })
  const gpu = placementOf(single).gpus[0] as LiveGpu
  expect(placementOf(double).gpus).toEqual(node.gpus)
  const candidates = (hostFreeMib: number) => ({
    ids: eligibleOn(gpu, requester, b.now, hostFreeMib)
      .map(({ id }) => id)
      .toSorted((a, c) => (a < c ? -1 : 1)),
    mib: eligibleVictimsMib(gpu, requester, hostFreeMib),
  })
  // A task takes its VRAM on all of its GPUs.
  expect(candidates(60)).toEqual({ ids: ['t1', 't2'], mib: 70 })
  expect(candidates(59)).toEqual({ ids: ['t1'], mib: 40 })
  expect(candidates(39)).toEqual({ ids: [], mib: 0 })
})
