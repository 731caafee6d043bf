import { movableMib } from '../../model/placement.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import { overCommitted, reserveDeficit } from '../../model/node-conditions.ts'
import { effectiveSchedulableMib } from '../../model/vram.ts'
import type { Percent } from '../../../protocol/units.ts'
import type { Vram } from './schema.ts'

/** The figures of one GPU under the percentage that applies to its node (semantics 1). */
export function vramOfGpu(gpu: Gpu, overcommitPercent: Percent): Vram {
  const residentMib = gpu.noswapResidentMib + gpu.swappableResidentMib
  return {
    physical_mib: gpu.physicalMib,
    used_mib: residentMib + gpu.foreignMib,
    resident_mib: residentMib,
    foreign_mib: gpu.foreignMib,
    committed_mib: gpu.noswapMib + gpu.swappableMib,
    swapped_mib: swappedOutMib(gpu),
    free_mib: Math.max(0, gpu.freeMib),
    effective_schedulable_mib: effectiveSchedulableMib(gpu.physicalMib, overcommitPercent),
    commit_limit_mib: gpu.limitMib,
    over_committed_mib: overCommitted(gpu),
    reserve_deficit_mib: reserveDeficit(gpu),
  }
}

type VramTotals = Pick<
  Vram,
  'physical_mib' | 'used_mib' | 'committed_mib' | 'swapped_mib' | 'effective_schedulable_mib'
>

/** Over all GPUs of these nodes. */
export function vramOfNodes(nodes: Iterable<Node>): VramTotals {
  const sum = { physical_mib: 0, used_mib: 0, committed_mib: 0, swapped_mib: 0, effective_schedulable_mib: 0 }
  for (const { gpus } of nodes) {
    for (const gpu of gpus) {
      sum.physical_mib += gpu.physicalMib
      sum.used_mib += gpu.noswapResidentMib + gpu.swappableResidentMib + gpu.foreignMib
      sum.committed_mib += gpu.noswapMib + gpu.swappableMib
      sum.swapped_mib += swappedOutMib(gpu)
      sum.effective_schedulable_mib += effectiveSchedulableMib(gpu.physicalMib, gpu.overcommitPercent)
    }
  }
  return sum
}

/** Sums over GPUs: of floors, never a floor of the sum (semantics 1). */
export function sumOfVram(figures: readonly Vram[]): Vram {
  const sum = { ...NOTHING }
  for (const one of figures) for (const name of VRAM_NAMES) sum[name] += one[name]
  return sum
}

const NOTHING: Vram = {
  physical_mib: 0,
  used_mib: 0,
  resident_mib: 0,
  foreign_mib: 0,
  committed_mib: 0,
  swapped_mib: 0,
  free_mib: 0,
  effective_schedulable_mib: 0,
  commit_limit_mib: 0,
  over_committed_mib: 0,
  reserve_deficit_mib: 0,
}
const VRAM_NAMES = Object.keys(NOTHING) as (keyof Vram)[]

function swappedOutMib(gpu: Gpu): number {
  let sum = 0
  for (const placement of gpu.placements)
    if (placement.residency === 'swapped_out') sum += movableMib(placement)
  return sum
}
