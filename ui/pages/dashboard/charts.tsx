/** Utilization, starvation in its parts, the layers of VRAM, queue and swaps, on one time axis with one cursor. */
import { createMemo, type JSX } from 'solid-js'
import { QueryState } from '../../components/query-state.tsx'
import { columnsFor, perHour } from '../../charts/series-data.ts'
import { useSeries } from '../../charts/use-series.ts'
import { UplotChart, type ChartLine } from '../../charts/uplot-chart.tsx'
import { mib, percent, whole } from '../../format/figures.ts'
import type { SeriesBody } from '../../../controller/api/schema/series.ts'
import styles from './dashboard.module.css'

const STARVATION: readonly ChartLine[] = [
  { name: 'queue', colour: '--queue', format: percent },
  { name: 'swap', colour: '--swap', format: percent, isStacked: true },
  { name: 'compute', colour: '--compute', format: percent, isStacked: true },
]
const VRAM: readonly ChartLine[] = [
  { name: 'used', colour: '--resident', format: mib },
  { name: 'allocated', colour: '--committed', format: mib },
  { name: 'swapped out', colour: '--swapped', format: mib },
  { name: 'physical', colour: '--quiet', format: mib, isDashed: true },
  { name: 'schedulable', colour: '--accent', format: mib, isDashed: true },
]
const NAMES = [
  'utilization_percent',
  'starvation_queue_percent',
  'starvation_swap_percent',
  'starvation_compute_percent',
  'vram_used_mib',
  'vram_committed_mib',
  'vram_swapped_mib',
  'vram_physical_mib',
  'vram_effective_schedulable_mib',
  'tasks_pending',
  'swap_outs',
  'swap_ins',
] as const

export function Charts(): JSX.Element {
  const series = useSeries(NAMES)
  return (
    <QueryState
      query={series}
      isEmpty={(body) => body.x.length === 0}
      whenEmpty={<p class="quiet">Nothing was sampled in this range yet.</p>}
    >
      {(body) => <Drawn body={body()} />}
    </QueryState>
  )
}

function Drawn(props: { readonly body: SeriesBody }): JSX.Element {
  const columns = (...names: readonly string[]) => columnsFor(props.body, names)
  const swaps = createMemo(() => {
    const [x = [], ...counts] = columns('swap_outs', 'swap_ins')
    return [x, ...counts.map((column) => perHour(column, props.body.step_seconds))]
  })
  const shared = { syncKey: 'dashboard' }
  return (
    <div class={styles['charts']}>
      <section class="card">
        <UplotChart
          {...shared}
          name="Utilization"
          lines={[{ name: 'utilization', colour: '--utilization', format: percent }]}
          data={columns('utilization_percent')}
          marks={props.body.marks}
          max={100}
        />
      </section>
      <section class="card">
        <UplotChart
          {...shared}
          name="Starvation"
          lines={STARVATION}
          data={columns('starvation_queue_percent', 'starvation_swap_percent', 'starvation_compute_percent')}
          marks={props.body.marks}
          max={100}
        />
      </section>
      <section class="card">
        <UplotChart
          {...shared}
          name="VRAM"
          lines={VRAM}
          data={columns('vram_used_mib', 'vram_committed_mib', 'vram_swapped_mib', 'vram_physical_mib', 'vram_effective_schedulable_mib')}
          marks={props.body.marks}
        />
      </section>
      <section class="card">
        <UplotChart
          {...shared}
          name="Queue"
          lines={[{ name: 'pending tasks', colour: '--queue', format: whole }]}
          data={columns('tasks_pending')}
          marks={props.body.marks}
        />
      </section>
      <section class="card">
        <UplotChart
          {...shared}
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
