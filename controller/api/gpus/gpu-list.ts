/** GPUs in an order of their own figures. */
import { inOrder, type Direction, type OrderedRest, type Part } from '../http/keyed-order.ts'
import type { GpuFigures } from './gpu-figures.ts'
import type { GpuSort } from './schema.ts'

/** Unknown comes after every number when figures are sorted downwards, as they are by default. */
const UNKNOWN = -1

/** The first key of each order. Registration of the node and index follow, so each order is total. */
const KEYS: Readonly<Record<GpuSort, (figures: GpuFigures) => readonly Part[]>> = {
  registered: () => [],
  name: ({ node }) => [node.name],
  utilization: ({ utilizationPercent }) => [utilizationPercent ?? UNKNOWN],
  used: ({ gpu }) => [usedMib(gpu) / Math.max(1, gpu.physicalMib)],
  out: ({ outMib }) => [outMib],
  swap_outs: ({ swapOuts }) => [swapOuts ?? UNKNOWN],
  copy: ({ copySeconds }) => [copySeconds ?? UNKNOWN],
  starvation: ({ starvationPercent }) => [starvationPercent ?? UNKNOWN],
  lost: ({ lostSeconds }) => [lostSeconds ?? UNKNOWN],
}

export interface GpuPageRequest {
  readonly sort: GpuSort
  /** null: names upwards, figures downwards. */
  readonly order: Direction | null
  readonly cursor: string | null
}

/** @throws ApiProblem if the cursor is invalid, or belongs to another order */
export function sortedGpus(
  gpus: Iterable<GpuFigures>,
  { sort, order, cursor }: GpuPageRequest,
): OrderedRest<GpuFigures> {
  const keyOf = KEYS[sort]
  const types: readonly ('number' | 'string')[] =
    sort === 'registered' ? [] : [sort === 'name' ? 'string' : 'number']
  const direction = order ?? (sort === 'registered' || sort === 'name' ? 'asc' : 'desc')
  const placeOf = (each: GpuFigures): readonly Part[] => [...keyOf(each), each.node.ordinal, each.gpu.index]
  return inOrder(gpus, { sort, direction, placeOf, types: [...types, 'number', 'number'] }, cursor)
}

export function usedMib(gpu: GpuFigures['gpu']): number {
  return residentMib(gpu) + gpu.foreignMib
}

export function residentMib(gpu: GpuFigures['gpu']): number {
  return gpu.noswapResidentMib + gpu.swappableResidentMib
}
