import { MEASURES } from '../../series/measures.ts'
import { SLOT_MS } from '../../series/retention.ts'
import type { SeriesAnswer } from '../../series/series.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import type { SeriesBody } from './series-schema.ts'
import { textOf } from './series-request.ts'
import { presentInstant } from '../http/instant.ts'

export function presentSeries(
  { grid, columns, storms }: SeriesAnswer,
  changes: readonly ConfigRecord[],
): SeriesBody {
  const { from, stepMs, points, tier } = grid
  return {
    from: presentInstant(from),
    to: presentInstant(from + points * stepMs),
    resolution_seconds: (SLOT_MS[tier] as number) / 1000,
    step_seconds: stepMs / 1000,
    x: Array.from({ length: points }, (_, point) => (from + point * stepMs) / 1000),
    series: columns.map(({ scope, name, values }) => ({
      scope: textOf(scope),
      name,
      unit: MEASURES[name].unit,
      values: values.map(rounded),
    })),
    marks: [
      ...changes.map(({ at, revision, author }) => ({
        kind: 'config_changed' as const,
        from: at / 1000,
        to: at / 1000,
        text: `Configuration ${revision}${author === null ? '' : ` by ${author}`}`,
      })),
      ...storms.map((storm) => ({
        kind: 'swap_storm' as const,
        from: storm.from / 1000,
        to: storm.to / 1000,
        text: `Swap storm: ${storm.swaps} swaps in ${(storm.to - storm.from) / 60_000} min`,
      })),
    ],
  }
}

/** Four digits after the point say all there is to see; whole numbers stay as they are. */
function rounded(value: number | null): number | null {
  return value === null || Number.isInteger(value) ? value : Math.round(value * 10_000) / 10_000
}
