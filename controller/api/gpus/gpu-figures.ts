/** Figures of all GPUs, computed once for several readers. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { movableMib } from '../../model/placement.ts'
import type { Gpu, Node } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import type { MeasureName } from '../../series/measures.ts'
import { gpuKey } from '../../series/node-sampler.ts'
import type { Series } from '../../series/series.ts'

export interface GpuFigures {
  readonly node: Node
  readonly gpu: Gpu
  readonly outMib: number
  /** null: unknown. */
  readonly utilizationPercent: number | null
  readonly starvationPercent: number | null
  readonly swapOuts: number | null
  readonly copySeconds: number | null
  readonly lostSeconds: number | null
}

interface Range {
  readonly from: Instant
  readonly to: Instant
}

export interface FleetFigures {
  readonly at: Instant
  readonly minute: Range
  readonly hour: Range
  /** GPUs in the order of registration, then by index. */
  readonly gpus: readonly GpuFigures[]
}

const MINUTE_MS: DurationMs = 60_000
const HOUR_MS: DurationMs = 3_600_000
/** An answer is given again for this long: the series have a new value every 10 s. */
const FRESH_MS: DurationMs = 2_000

export function createGpuFigures(views: Views, series: Series): () => FleetFigures {
  let known: FleetFigures | null = null
  return () => {
    const now = views.now()
    if (known === null || now < known.at || now - known.at >= FRESH_MS) known = figuresOf(views, series, now)
    return known
  }
}

const OF_MINUTE: readonly MeasureName[] = ['utilization_percent']
const OF_HOUR: readonly MeasureName[] = [
  'starvation_percent',
  'swap_outs',
  'swap_copy_seconds',
  'gpu_seconds_lost',
]

function figuresOf(views: Views, series: Series, at: Instant): FleetFigures {
  const all = [...views.nodes()]
    .sort((a, b) => a.ordinal - b.ordinal)
    .flatMap((node) => node.gpus.map((gpu) => ({ node, gpu })))
  const keys = all.map(({ node, gpu }) => gpuKey(node.id, gpu.index))
  series.take()
  const minute = series.recent('gpu', { names: OF_MINUTE, keys, ms: MINUTE_MS })
  const hour = series.recent('gpu', { names: OF_HOUR, keys, ms: HOUR_MS })
  const gpus = all.map(({ node, gpu }, place): GpuFigures => ({
    node,
    gpu,
    outMib: gpu.placements.reduce(
      (sum, placement) => (placement.residency === 'swapped_out' ? sum + movableMib(placement) : sum),
      0,
    ),
    utilizationPercent: rounded(minute.of(place, 'utilization_percent'), 1),
    starvationPercent: rounded(hour.of(place, 'starvation_percent'), 1),
    swapOuts: hour.of(place, 'swap_outs'),
    copySeconds: rounded(hour.of(place, 'swap_copy_seconds'), 10),
    lostSeconds: rounded(hour.of(place, 'gpu_seconds_lost'), 1),
  }))
  return { at, minute: rangeOf(minute), hour: rangeOf(hour), gpus }
}

function rangeOf({ from, to }: Range): Range {
  return { from, to }
}

function rounded(value: number | null, parts: number): number | null {
  return value === null ? null : Math.round(value * parts) / parts
}
