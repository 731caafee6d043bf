/** The figures of the summary against those of yesterday. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { MeasureName } from '../../series/measures.ts'
import { CLUSTER } from '../../series/query.ts'
import type { Series } from '../../series/series.ts'
import type { SummaryBody } from './summary-schema.ts'

export type Figures = Readonly<Record<'utilization' | 'starvation' | 'pending', number | null>>

const MEASURES: Readonly<Record<keyof Figures, MeasureName>> = {
  utilization: 'utilization_percent',
  starvation: 'starvation_percent',
  pending: 'tasks_pending',
}

const HOUR_MS: DurationMs = 3_600_000
/** The means are read again after this time. */
const FRESH_MS: DurationMs = 60_000

/** Means of the hour that ended a day ago, read once for several summaries. */
export function createYesterday(series: Pick<Series, 'answer'>): (now: Instant) => Figures {
  let known: { readonly at: Instant; readonly figures: Figures } | null = null
  return (now) => {
    if (known === null || now < known.at || now - known.at >= FRESH_MS)
      known = { at: now, figures: meansOf(series, now - 24 * HOUR_MS) }
    return known.figures
  }
}

function meansOf(series: Pick<Series, 'answer'>, to: Instant): Figures {
  const from = to - HOUR_MS
  // Nothing was measured before 1970: a simulated clock may begin there.
  if (from < 0) return { utilization: null, starvation: null, pending: null }
  const { columns } = series.answer({
    ...{ names: Object.values(MEASURES), scopes: [CLUSTER], from, to, maxPoints: 1 },
  })
  const mean = (name: MeasureName): number | null =>
    columns.find((column) => column.name === name)?.values[0] ?? null
  return {
    utilization: mean(MEASURES.utilization),
    starvation: mean(MEASURES.starvation),
    pending: mean(MEASURES.pending),
  }
}

export function trendsOf(now: Figures, before: Figures): SummaryBody['trends'] {
  return {
    utilization_points: difference(now.utilization, before.utilization),
    starvation_points: difference(now.starvation, before.starvation),
    pending_tasks: difference(now.pending, before.pending),
  }
}

/** Tenths, which is what a reader compares. */
function difference(now: number | null, before: number | null): number | null {
  if (now === null || before === null) return null
  // The sum makes a negative zero a zero.
  return Math.round((now - before) * 10) / 10 + 0
}
