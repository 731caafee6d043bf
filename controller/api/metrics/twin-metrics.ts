/** How well the twin foretells; without one there are no samples. */
import { TWIN_METRICS } from '../../ports/twin.ts'
import type { Twin } from '../../ports/twin.ts'
import { gauge, gauges, type Metrics } from './metrics.ts'

export function addTwinMetrics(metrics: Metrics, twin: Twin | null): void {
  metrics.add(
    gauges(
      'headroom_twin_drift_ratio',
      'Distance of what came from what the twin foretold, in widths of its band, mean over the last hour.',
      ['metric'],
      function* () {
        if (twin === null) return
        const { scores } = twin.drift()
        for (const metric of TWIN_METRICS) {
          const value = scores[metric]
          if (value !== null) yield { labels: [metric], value }
        }
      },
    ),
    gauge(
      'headroom_twin_drifting',
      '1 while the twin drifts and gives no forecasts, 0 while it is steady; no sample before enough was compared.',
      () => {
        const state = twin?.drift().state ?? 'unknown'
        return state === 'unknown' ? null : Number(state === 'drifting')
      },
    ),
  )
}
