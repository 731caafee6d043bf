/**
 * The charts that the pages of a cluster and of a node share: utilization, the layers of VRAM, and swaps per
 * hour.
 */
import { createMemo, type JSX } from 'solid-js'
import type { SeriesBody } from '../../controller/api/observe/series-schema.ts'
import { mib, percent, seconds, whole } from '../format/figures.ts'
import { columnsFor, perHour } from './series-data.ts'
import { TimeChart, type ChartLine } from './time-chart.tsx'

/** The lines of the VRAM chart, each with its series. */
const VRAM: readonly (ChartLine & { readonly series: string })[] = [
  { name: 'used', series: 'vram_used_mib', colour: '--resident', format: mib },
  { name: 'allocated', series: 'vram_committed_mib', colour: '--committed', format: mib },
  { name: 'swapped out', series: 'vram_swapped_mib', colour: '--swapped', format: mib },
  { name: 'physical', series: 'vram_physical_mib', colour: '--quiet', format: mib, isDashed: true },
  {
    name: 'schedulable',
    series: 'vram_effective_schedulable_mib',
    colour: '--accent',
    format: mib,
    isDashed: true,
  },
]
/** MiB: the scale uses multiples of GiB and TiB. */
const POWERS_OF_TWO = Array.from({ length: 40 }, (_, power) => 2 ** power)
const UTILIZATION: readonly ChartLine[] = [{ name: 'utilization', colour: '--utilization', format: percent }]
const SWAPS: readonly ChartLine[] = [
  { name: 'out', colour: '--swap', format: whole },
  { name: 'in', colour: '--resident', format: whole },
]

const WAKE: readonly (ChartLine & { readonly series: string })[] = [
  { name: 'p50', series: 'wake_p50_seconds', colour: '--resident', format: seconds },
  { name: 'p95', series: 'wake_p95_seconds', colour: '--swap', format: seconds },
  { name: 'p99', series: 'wake_p99_seconds', colour: '--queue', format: seconds },
]

/** The series that these charts request. */
export const VITAL_SERIES: readonly string[] = [
  'utilization_percent',
  ...VRAM.map(({ series }) => series),
  'swap_outs',
  'swap_ins',
  ...WAKE.map(({ series }) => series),
]

export interface VitalChartProps {
  readonly body: SeriesBody
  /** Scope of /series: `cluster`, `node:<id>`. */
  readonly scope: string
  /** Charts with the same key share a cursor. */
  readonly syncKey: string
}

export function UtilizationChart(props: VitalChartProps): JSX.Element {
  const data = () => columnsFor(props.body, ['utilization_percent'], props.scope)
  return (
    <TimeChart
      syncKey={props.syncKey}
      name="Utilization"
      lines={UTILIZATION}
      data={data()}
      marks={props.body.marks}
      max={100}
    />
  )
}

export function VramChart(props: VitalChartProps): JSX.Element {
  const names = VRAM.map(({ series }) => series)
  return (
    <TimeChart
      syncKey={props.syncKey}
      name="VRAM"
      lines={VRAM}
      steps={POWERS_OF_TWO}
      data={columnsFor(props.body, names, props.scope)}
      marks={props.body.marks}
    />
  )
}

export function SwapChart(props: VitalChartProps): JSX.Element {
  const data = createMemo(() => {
    const [x = [], ...counts] = columnsFor(props.body, ['swap_outs', 'swap_ins'], props.scope)
    return [x, ...counts.map((column) => perHour(column, props.body.step_seconds))]
  })
  return (
    <TimeChart
      syncKey={props.syncKey}
      name="Swaps per hour"
      lines={SWAPS}
      data={data()}
      marks={props.body.marks}
    />
  )
}

/** How long tasks took to return after a request for them; empty where none returned. */
export function WakeChart(props: VitalChartProps): JSX.Element {
  const names = WAKE.map(({ series }) => series)
  return (
    <TimeChart
      syncKey={props.syncKey}
      name="Wake latency"
      lines={WAKE}
      data={columnsFor(props.body, names, props.scope)}
      marks={props.body.marks}
    />
  )
}
