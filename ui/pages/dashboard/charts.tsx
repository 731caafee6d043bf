/**
 * Utilization, starvation in its parts, the layers of VRAM, queue and swaps, on one time axis with one
 * cursor.
 */
import type { JSX } from 'solid-js'
import { columnsFor } from '../../charts/series-data.ts'
import { TimeChart, type ChartLine } from '../../charts/time-chart.tsx'
import { useSeries } from '../../charts/use-series.ts'
import {
  SwapChart,
  UtilizationChart,
  VITAL_SERIES,
  VramChart,
  WakeChart,
} from '../../charts/vital-charts.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { percent, whole } from '../../format/figures.ts'
import type { SeriesBody } from '../../../controller/api/observe/series-schema.ts'
import styles from './dashboard.module.css'

const STARVATION: readonly ChartLine[] = [
  { name: 'queue', colour: '--queue', format: percent },
  { name: 'swap', colour: '--swap', format: percent, isStacked: true },
  { name: 'compute', colour: '--compute', format: percent, isStacked: true },
]
const STARVATION_SERIES = [
  'starvation_queue_percent',
  'starvation_swap_percent',
  'starvation_compute_percent',
] as const
const QUEUE: readonly ChartLine[] = [{ name: 'pending tasks', colour: '--queue', format: whole }]
const NAMES = [...VITAL_SERIES, ...STARVATION_SERIES, 'tasks_pending'] as const

export default function Charts(): JSX.Element {
  const series = useSeries(NAMES)
  return (
    <QueryState
      query={series}
      isEmpty={(body) => body.x.length === 0}
      whenEmpty={<p class="quiet">No samples in this range yet.</p>}
    >
      {(body) => <Drawn body={body()} />}
    </QueryState>
  )
}

function Drawn(props: { readonly body: SeriesBody }): JSX.Element {
  const vital = { scope: 'cluster', syncKey: 'dashboard' }
  return (
    <div class={styles['charts']}>
      <section class="card">
        <UtilizationChart {...vital} body={props.body} />
      </section>
      <section class="card">
        <TimeChart
          syncKey={vital.syncKey}
          name="Starvation"
          lines={STARVATION}
          data={columnsFor(props.body, STARVATION_SERIES)}
          marks={props.body.marks}
          max={100}
        />
      </section>
      <section class="card">
        <VramChart {...vital} body={props.body} />
        <p class="quiet">Totals for the nodes that are up.</p>
      </section>
      <section class="card">
        <TimeChart
          syncKey={vital.syncKey}
          name="Queue"
          lines={QUEUE}
          data={columnsFor(props.body, ['tasks_pending'])}
          marks={props.body.marks}
        />
      </section>
      <section class="card">
        <SwapChart {...vital} body={props.body} />
      </section>
      <section class="card">
        <WakeChart {...vital} body={props.body} />
      </section>
    </div>
  )
}
