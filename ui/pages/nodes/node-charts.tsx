/** Utilization, VRAM and swaps of one node. */
import type { JSX } from 'solid-js'
import { useSeries } from '../../charts/use-series.ts'
import {
  SwapChart,
  UtilizationChart,
  VITAL_SERIES,
  VramChart,
  WakeChart,
  type VitalChartProps,
} from '../../charts/vital-charts.tsx'
import { QueryState } from '../../components/query-state.tsx'

export function NodeCharts(props: { readonly nodeId: string }): JSX.Element {
  const scope = (): string => `node:${props.nodeId}`
  const series = useSeries(VITAL_SERIES, scope)
  return (
    <section class="stack" aria-label="Node charts">
      <QueryState
        query={series}
        isEmpty={(body) => body.x.length === 0}
        whenEmpty={<p class="quiet">No samples in this range yet.</p>}
      >
        {(body) => <Drawn body={body()} scope={scope()} syncKey="node" />}
      </QueryState>
    </section>
  )
}

function Drawn(props: VitalChartProps): JSX.Element {
  return (
    <div class="stack">
      <section class="card">
        <UtilizationChart {...props} />
      </section>
      <section class="card">
        <VramChart {...props} />
      </section>
      <section class="card">
        <SwapChart {...props} />
      </section>
      <section class="card">
        <WakeChart {...props} />
      </section>
    </div>
  )
}
