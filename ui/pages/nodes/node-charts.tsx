/** Utilization, VRAM and swaps of one node. */
import { createMemo, type JSX } from 'solid-js'
import type { SeriesBody } from '../../../controller/api/schema/series.ts'
import { columnsFor, perHour } from '../../charts/series-data.ts'
import { UplotChart, type ChartLine } from '../../charts/uplot-chart.tsx'
import { useSeries } from '../../charts/use-series.ts'
import { QueryState } from '../../components/query-state.tsx'
import { RangePicker } from '../../components/range-picker.tsx'
import { mib, percent, whole } from '../../format/figures.ts'

const VRAM: readonly ChartLine[] = [
  { name: 'used', colour: '--resident', format: mib },
  { name: 'allocated', colour: '--committed', format: mib },
  { name: 'swapped out', colour: '--swapped', format: mib },
  { name: 'physical', colour: '--quiet', format: mib, isDashed: true },
  { name: 'schedulable', colour: '--accent', format: mib, isDashed: true },
]
const VRAM_NAMES = [
  'vram_used_mib',
  'vram_committed_mib',
  'vram_swapped_mib',
  'vram_physical_mib',
  'vram_effective_schedulable_mib',
] as const
const NAMES = ['utilization_percent', ...VRAM_NAMES, 'swap_outs', 'swap_ins'] as const

export function NodeCharts(props: { readonly nodeId: string }): JSX.Element {
  const scope = (): string => `node:${props.nodeId}`
  const series = useSeries(NAMES, scope)
  return (
    <section class="stack" aria-label="Charts of the node">
      <RangePicker />
      <QueryState
        query={series}
        isEmpty={(body) => body.x.length === 0}
        whenEmpty={<p class="quiet">Nothing was sampled in this range yet.</p>}
      >
        {(body) => <Drawn body={body()} scope={scope()} />}
      </QueryState>
    </section>
  )
}

function Drawn(props: { readonly body: SeriesBody; readonly scope: string }): JSX.Element {
  const columns = (...names: readonly string[]) => columnsFor(props.body, names, props.scope)
  const swaps = createMemo(() => {
    const [x = [], ...counts] = columns('swap_outs', 'swap_ins')
    return [x, ...counts.map((column) => perHour(column, props.body.step_seconds))]
  })
  return (
    <div class="stack">
      <section class="card">
        <UplotChart
          syncKey="node"
          name="Utilization"
          lines={[{ name: 'utilization', colour: '--utilization', format: percent }]}
          data={columns('utilization_percent')}
          marks={props.body.marks}
          max={100}
        />
      </section>
      <section class="card">
        <UplotChart syncKey="node" name="VRAM" lines={VRAM} data={columns(...VRAM_NAMES)} marks={props.body.marks} />
      </section>
      <section class="card">
        <UplotChart
          syncKey="node"
          name="Swaps per hour"
          lines={[
            { name: 'out', colour: '--swap', format: whole },
            { name: 'in', colour: '--resident', format: whole },
          ]}
          data={swaps()}
          marks={props.body.marks}
        />
      </section>
    </div>
  )
}
