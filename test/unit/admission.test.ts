import { describe, expect, it } from 'vitest'
import type { NoSwap } from '../../protocol/units.ts'
import { checkConfigChange } from '../../controller/model/config.ts'
import type { GpuLoad } from '../../controller/model/vram.ts'
import {
  admit,
  commitLimitMib,
  effectiveSchedulableMib,
  residentCapacityMib,
  resolveOvercommit,
} from '../../controller/model/vram.ts'
import type { LiveGpu } from '../../controller/state/facts.ts'
import { addPlacement, changeResidency, rederive } from '../../controller/state/gpu-ledger.ts'
import { newLivePlacement, newLiveTask } from '../../controller/state/new-facts.ts'
import { largestAfterSwapMib, largestNowMib } from '../../controller/policy/placement/feasible.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'
import { readVectors } from '../support/vectors.ts'

interface VectorGpu {
  readonly physical_mib: number
  readonly reserve_mib: number
  readonly percent: number
  readonly foreign_mib?: number
  readonly placed: readonly {
    readonly vram_mib: number
    readonly noswap: NoSwap
    readonly resident?: boolean
  }[]
}

interface Vectors {
  readonly effective: readonly {
    readonly physical_mib: number
    readonly percent: number
    readonly effective_mib: number
  }[]
  readonly override: readonly {
    readonly global: number
    readonly override: number | null
    readonly effective: number
    readonly source: 'node' | 'global'
  }[]
  readonly invalid_percent_400: readonly unknown[]
  readonly admission: readonly {
    readonly name: string
    readonly gpu: VectorGpu
    readonly request: { readonly vram_mib: number; readonly noswap: NoSwap }
    readonly verdict: string
  }[]
}

describe('admission according to the vectors', () => {
  const vectors = readVectors<Vectors>('admission.json')

  it('has cases of every kind', () => {
    for (const cases of [
      vectors.effective,
      vectors.override,
      vectors.invalid_percent_400,
      vectors.admission,
    ]) {
      expect(cases.length).toBeGreaterThan(0)
    }
  })

  for (const { physical_mib, percent, effective_mib } of vectors.effective) {
    it(`${physical_mib} MiB at ${percent} % have ${effective_mib} MiB effective schedulable VRAM`, () => {
      expect(effectiveSchedulableMib(physical_mib, percent)).toBe(effective_mib)
    })
  }

  for (const { global, override, effective, source } of vectors.override) {
    it(`a node's ${override ?? 'missing'} override of ${global} % gives ${effective} %`, () => {
      expect(resolveOvercommit(global, override)).toEqual({ percent: effective, source })
    })
  }

  for (const value of vectors.invalid_percent_400) {
    it(`${JSON.stringify(value)} is not a valid percentage`, () => {
      const problems = checkConfigChange({ default_vram_overcommit_percent: value })
      expect(problems.map((problem) => problem.field)).toEqual(['default_vram_overcommit_percent'])
    })
  }

  for (const { name, gpu, request, verdict } of vectors.admission) {
    it(name, () => {
      expect(admit(loadOf(gpu), request.vram_mib, request.noswap)).toBe(verdict)
      expectSameInTheBooks(gpu, request, verdict)
    })
  }
})

describe('admission', () => {
  it('refuses a demand that is not a whole number', () => {
    const load = loadOf({ physical_mib: 1000, reserve_mib: 0, percent: 0, placed: [] })
    expect([0.5, NaN, Infinity, -1].map((mib) => admit(load, mib, 0))).toEqual(Array(4).fill('INVALID'))
  })

  it('accepts both ends of the range of percentages', () => {
    for (const percent of [0, 1000])
      expect(checkConfigChange({ default_vram_overcommit_percent: percent })).toEqual([])
  })
})

/** The figures of semantics 1, computed from the vector alone. */
function loadOf({ physical_mib, reserve_mib, percent, foreign_mib = 0, placed }: VectorGpu): GpuLoad {
  const capacityMib = residentCapacityMib(physical_mib, reserve_mib, foreign_mib)
  const sum = (tasks: VectorGpu['placed']) => tasks.reduce((total, task) => total + task.vram_mib, 0)
  const noswap = placed.filter((task) => task.noswap === 1)
  const swappable = placed.filter((task) => task.noswap === 0)
  return {
    physicalMib: physical_mib,
    reserveMib: reserve_mib,
    capacityMib,
    limitMib: commitLimitMib(physical_mib, percent, capacityMib),
    noswapMib: sum(noswap),
    swappableMib: sum(swappable),
    freeMib: capacityMib - sum(noswap) - sum(swappable.filter((task) => task.resident === true)),
    largestSwappableMib: Math.max(0, ...swappable.map((task) => task.vram_mib)),
  }
}

/**
 * The engine's ledger of such a GPU has the same figures, and the scheduler's largest demands the same
 * verdict.
 */
function expectSameInTheBooks(
  vector: VectorGpu,
  request: { vram_mib: number; noswap: NoSwap },
  verdict: string,
): void {
  const gpu = gpuWith(vector)
  const expected = loadOf(vector)
  expect(gpu).toMatchObject(expected)
  const kind = request.noswap === 1 ? 'noswap' : 'swappable'
  if (verdict === 'INVALID') return
  expect(largestNowMib(gpu, kind, 64) >= request.vram_mib).toBe(verdict === 'FITS')
  if (verdict === 'FITS' || verdict === 'FITS_AFTER_SWAP') return
  expect(largestAfterSwapMib(gpu, kind, false, 64)).toBeLessThan(request.vram_mib)
}

function gpuWith({ physical_mib, reserve_mib, percent, foreign_mib = 0, placed }: VectorGpu): LiveGpu {
  const b = new ClusterBuilder({ safety_reserve_mib: reserve_mib, default_vram_overcommit_percent: percent })
  const node = b.addNode({ id: 'n', gpus: [physical_mib] })
  b.heartbeat(node, { 0: foreign_mib })
  const gpu = node.gpus[0] as LiveGpu
  for (const { vram_mib, noswap, resident } of placed) {
    const { spec } = b.submit({ vramMib: vram_mib, noswap })
    const placement = newLivePlacement(newLiveTask(spec, b.now), [gpu], vram_mib, b.now)
    placement.residency = 'resident'
    addPlacement(gpu, placement)
    if (noswap === 1 || resident === true) continue
    changeResidency(gpu, placement, 'resident', 'swapped_out')
    placement.residency = 'swapped_out'
  }
  rederive(gpu)
  return gpu
}
