/** GPUs of the map, from the columns of the API, and the figures by which they are coloured. Pure. */
import type { GpuListBody } from '../../../controller/api/gpus/schema.ts'
import { whole } from '../../format/figures.ts'

export interface MapGpu {
  readonly key: string
  readonly nodeId: string
  readonly nodeName: string
  readonly isUp: boolean
  readonly index: number
  readonly model: string
  readonly tasks: number
  readonly physicalMib: number
  readonly usedMib: number
  readonly outMib: number
  readonly utilization: number | null
  readonly starvation: number | null
  readonly swapOuts: number | null
  readonly copySeconds: number | null
  readonly lostSeconds: number | null
}

export function gpusOf({ nodes, models, columns }: GpuListBody): readonly MapGpu[] {
  return columns.node.map((place, i) => {
    const node = nodes[place]
    const at = <T>(column: readonly T[]): T => column[i] as T
    return {
      key: `${node?.node_id ?? ''}/${at(columns.index)}`,
      nodeId: node?.node_id ?? '',
      nodeName: node?.name ?? '',
      isUp: node?.status === 'up',
      index: at(columns.index),
      model: models[at(columns.model)] ?? '',
      tasks: at(columns.tasks),
      physicalMib: at(columns.physical_mib),
      usedMib: at(columns.used_mib),
      outMib: at(columns.out_mib),
      utilization: at(columns.utilization_percent),
      starvation: at(columns.starvation_percent),
      swapOuts: at(columns.swap_outs),
      copySeconds: at(columns.copy_seconds),
      lostSeconds: at(columns.lost_seconds),
    }
  })
}

export type FigureName = 'utilization' | 'used' | 'swaps' | 'starvation'

interface Figure {
  readonly name: FigureName
  readonly label: string
  /** Words of the five steps. */
  readonly steps: readonly string[]
  /** Lower bounds of the steps after the first. */
  readonly bounds: readonly number[]
  readonly of: (gpu: MapGpu) => number | null
  /** Text in a large cell. */
  readonly short: (gpu: MapGpu) => string
}

const PERCENT_STEPS = ['0–20%', '20–40%', '40–60%', '60–80%', '80–100%']
const PERCENT_BOUNDS = [20, 40, 60, 80]

export const FIGURES: readonly Figure[] = [
  percentFigure('utilization', 'Utilization', ({ utilization }) => utilization),
  percentFigure('used', 'VRAM used', ({ usedMib, physicalMib }) =>
    physicalMib === 0 ? null : (100 * usedMib) / physicalMib,
  ),
  {
    name: 'swaps',
    label: 'Swap-outs, 1 h',
    steps: ['0', '1–4', '5–14', '15–39', '40 or more'],
    bounds: [1, 5, 15, 40],
    of: ({ swapOuts }) => swapOuts,
    short: ({ swapOuts }) => whole(swapOuts),
  },
  percentFigure('starvation', 'Starvation, 1 h', ({ starvation }) => starvation),
]

function percentFigure(name: FigureName, label: string, of: Figure['of']): Figure {
  const short = (gpu: MapGpu): string => {
    const value = of(gpu)
    return value === null ? '—' : `${Math.round(value)}%`
  }
  return { name, label, steps: PERCENT_STEPS, bounds: PERCENT_BOUNDS, of, short }
}

function figureOf(name: FigureName): Figure {
  return FIGURES.find((figure) => figure.name === name) as Figure
}

/** 0 to 4; null: unknown, also while its node is not up. */
export function stepOf(name: FigureName, gpu: MapGpu): number | null {
  const { of, bounds } = figureOf(name)
  const value = gpu.isUp ? of(gpu) : null
  return value === null ? null : bounds.filter((bound) => value >= bound).length
}

/** 1. Highest figure, unknown last. 2. The order of the list. */
export function ranked(name: FigureName, gpus: readonly MapGpu[]): readonly MapGpu[] {
  const { of } = figureOf(name)
  return gpus.toSorted((a, b) => (of(b) ?? -1) - (of(a) ?? -1))
}
