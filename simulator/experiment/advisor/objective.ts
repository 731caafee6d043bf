/**
 * An operator's objective: a metric of a run and its maximum, as `starvation.total<=20` or
 * `queue_wait.p95<=10m`.
 */
import type { Metrics } from '../../scenario/metrics.ts'
import { formatDuration, parseDuration } from '../../document/quantity.ts'

export interface Objective {
  readonly figure: ObjectiveFigure
  /** Percent, seconds, or a plain number, depending on the metric. */
  readonly max: number
}

type Unit = 'percent' | 'seconds' | 'number'

interface Figure {
  readonly unit: Unit
  /** Null: the run has no such metric (no task started, for example). */
  readonly valueOf: (metrics: Metrics) => number | null
  /** Label. */
  readonly title: string
}

const FIGURES = {
  'starvation.total': { unit: 'percent', title: 'starvation', valueOf: (m) => m.starvation_percent.total },
  'starvation.queue': {
    unit: 'percent',
    title: 'starvation in the queue',
    valueOf: (m) => m.starvation_percent.queue,
  },
  'starvation.swap': {
    unit: 'percent',
    title: 'starvation by swaps',
    valueOf: (m) => m.starvation_percent.swap,
  },
  'starvation.compute': {
    unit: 'percent',
    title: 'starvation by sharing',
    valueOf: (m) => m.starvation_percent.compute,
  },
  'queue_wait.mean': {
    unit: 'seconds',
    title: 'mean queue wait',
    valueOf: (m) => m.queue_wait_s?.mean ?? null,
  },
  'queue_wait.p50': { unit: 'seconds', title: 'queue wait p50', valueOf: (m) => m.queue_wait_s?.p50 ?? null },
  'queue_wait.p95': { unit: 'seconds', title: 'queue wait p95', valueOf: (m) => m.queue_wait_s?.p95 ?? null },
  'queue_wait.p99': { unit: 'seconds', title: 'queue wait p99', valueOf: (m) => m.queue_wait_s?.p99 ?? null },
  'slowdown.mean': { unit: 'number', title: 'mean slowdown', valueOf: (m) => m.slowdown?.mean ?? null },
  'slowdown.p95': { unit: 'number', title: 'slowdown p95', valueOf: (m) => m.slowdown?.p95 ?? null },
  // Without a wake no request waited for one.
  'wake.p50': { unit: 'seconds', title: 'wake p50', valueOf: (m) => m.wake_s?.p50 ?? 0 },
  'wake.p95': { unit: 'seconds', title: 'wake p95', valueOf: (m) => m.wake_s?.p95 ?? 0 },
  'wake.p99': { unit: 'seconds', title: 'wake p99', valueOf: (m) => m.wake_s?.p99 ?? 0 },
  swaps_per_hour: { unit: 'number', title: 'swaps an hour', valueOf: (m) => m.swaps_per_hour },
} as const satisfies Readonly<Record<string, Figure>>

export type ObjectiveFigure = keyof typeof FIGURES

export const OBJECTIVE_FIGURES = Object.keys(FIGURES) as readonly ObjectiveFigure[]

export const OBJECTIVE_FORMAT =
  `FIGURE<=MAX, the figure one of ${OBJECTIVE_FIGURES.join(', ')}; percent, seconds or a ` +
  'time (starvation.total<=20, queue_wait.p95<=10m)'

/** The default objectives. */
export const DEFAULT_OBJECTIVES: readonly Objective[] = [{ figure: 'starvation.total', max: 20 }]

/** Null: not an objective. */
export function parseObjective(text: string): Objective | null {
  const match = /^([a-z0-9_.]{1,40})\s*<=\s*([0-9.]{1,20}|[0-9]{1,15}[a-z]{1,2})$/.exec(text.trim())
  const figure = OBJECTIVE_FIGURES.find(
    (each) => each === (match?.[1] === 'starvation' ? 'starvation.total' : match?.[1]),
  )
  if (match === null || figure === undefined) return null
  const written = match[2] as string
  if (/^\d+(\.\d+)?$/.test(written)) return { figure, max: Number(written) }
  const ms = unitOf(figure) === 'seconds' ? parseDuration(written) : null
  return ms === null ? null : { figure, max: ms / 1000 }
}

/** In the notation that can be parsed again: `starvation.total<=20`. */
export function objectiveText({ figure, max }: Objective): string {
  const isDuration = unitOf(figure) === 'seconds' && Number.isSafeInteger(max * 1000)
  return `${figure}<=${isDuration ? formatDuration(max * 1000) : max}`
}

export function valueOfObjective({ figure }: Objective, metrics: Metrics): number | null {
  return FIGURES[figure].valueOf(metrics)
}

export function unitOf(figure: ObjectiveFigure): Unit {
  return FIGURES[figure].unit
}

/** Label: `queue wait p95`. */
export function titleOf(figure: ObjectiveFigure): string {
  return FIGURES[figure].title
}
