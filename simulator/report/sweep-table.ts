/**
 * A sweep for a terminal: one line per percentage, means over the seeds. Also as CSV, with the bands. A
 * metric that only some fleets have is a column if a run has it: in CSV the last, so that no other column
 * moves; on a terminal only if it is not always 0.
 */
import type { Band, SweepSummary } from '../experiment/sweep/sweep.ts'
import { csvOf, writtenText } from '../results/csv.ts'
import { shownNumber, shownPercent, shownSeconds, tableOf } from './plain-text.ts'

interface Column {
  readonly title: string
  readonly name: string
  readonly valueOf: (summary: SweepSummary) => Band | null
  readonly show: (mean: number) => string
}

const COLUMNS: readonly Column[] = [
  {
    title: 'utilization',
    name: 'utilization_percent',
    valueOf: (s) => s.utilization_percent,
    show: shownPercent,
  },
  {
    title: 'starvation',
    name: 'starvation_percent',
    valueOf: (s) => s.starvation_percent.total,
    show: shownPercent,
  },
  {
    title: 'queue',
    name: 'starvation_queue_percent',
    valueOf: (s) => s.starvation_percent.queue,
    show: shownPercent,
  },
  {
    title: 'swap',
    name: 'starvation_swap_percent',
    valueOf: (s) => s.starvation_percent.swap,
    show: shownPercent,
  },
  {
    title: 'compute',
    name: 'starvation_compute_percent',
    valueOf: (s) => s.starvation_percent.compute,
    show: shownPercent,
  },
  { title: 'wait p50', name: 'queue_wait_p50_s', valueOf: (s) => s.queue_wait_s.p50, show: shownSeconds },
  { title: 'wait p95', name: 'queue_wait_p95_s', valueOf: (s) => s.queue_wait_s.p95, show: shownSeconds },
  {
    title: 'swaps/h',
    name: 'swaps_per_hour',
    valueOf: (s) => s.swaps_per_hour,
    show: (mean) => mean.toFixed(1),
  },
  {
    title: 'GiB/h',
    name: 'swapped_gib_per_hour',
    valueOf: (s) => s.swapped_gib_per_hour,
    show: (mean) => mean.toFixed(1),
  },
  { title: 'Jain', name: 'swap_jain', valueOf: (s) => s.swap_jain, show: (mean) => shownNumber(mean, 3) },
]
const AFTER_STARVATION = 5
const UNSIGNALLED_WAIT: Column = {
  title: 'unsignalled wait',
  name: 'unsignalled_wait_percent',
  valueOf: (s) => s.unsignalled_wait_percent ?? null,
  show: shownPercent,
}

const WAKES: readonly Column[] = [
  { title: 'wake p50', name: 'wake_p50_s', valueOf: (s) => s.wake_s?.p50 ?? null, show: shownSeconds },
  { title: 'wake p95', name: 'wake_p95_s', valueOf: (s) => s.wake_s?.p95 ?? null, show: shownSeconds },
]

export function formatSweep(summaries: readonly SweepSummary[]): string {
  const fields = fieldsOf(summaries)
  const shown = [
    ...(summaries.some(hasUnsignalledWait)
      ? COLUMNS.toSpliced(AFTER_STARVATION, 0, UNSIGNALLED_WAIT)
      : COLUMNS),
    ...wakesIn(summaries),
  ]
  const head = ['overcommit', ...fields, ...shown.map((column) => column.title)]
  const rows = summaries.map((summary) => [
    `${summary.overcommit_percent}%`,
    ...fields.map((field) => String(summary.settings[field])),
    ...shown.map((column) => {
      const band = column.valueOf(summary)
      return band === null ? '–' : column.show(band.mean)
    }),
  ])
  return tableOf([head, ...rows])
}

export function sweepCsv(summaries: readonly SweepSummary[]): string {
  const fields = fieldsOf(summaries)
  const figures = [
    ...COLUMNS,
    ...(summaries.some(({ unsignalled_wait_percent }) => unsignalled_wait_percent !== undefined)
      ? [UNSIGNALLED_WAIT, { ...UNSIGNALLED_WAIT, name: 'unheard_percent' }]
      : []),
    ...wakesIn(summaries),
  ]
  const columns = [
    'overcommit_percent',
    ...fields,
    'seeds',
    ...figures.flatMap(({ name }) => [name, `${name}_p10`, `${name}_p90`, `${name}_p95`]),
  ]
  return csvOf(
    columns,
    summaries.map((summary) => [
      summary.overcommit_percent,
      ...fields.map((field) => writtenText(String(summary.settings[field]))),
      summary.seeds,
      ...figures.flatMap((column) => {
        const band = column.valueOf(summary)
        return band === null
          ? ['', '', '', '']
          : [band.mean, band.p10, band.p90, band.p95].map((value) => value.toFixed(6))
      }),
    ]),
  )
}

/** Some task waited with work without a signal: tables for people show this metric next to starvation. */
export function hasUnsignalledWait({ unsignalled_wait_percent }: SweepSummary): boolean {
  return unsignalled_wait_percent !== undefined && unsignalled_wait_percent.mean > 0
}

/** The last columns, so that no other column moves. */
function wakesIn(summaries: readonly SweepSummary[]): readonly Column[] {
  return summaries.some(({ wake_s }) => wake_s !== undefined) ? WAKES : []
}

/** Other varied fields that are equal in all lines. */
function fieldsOf(summaries: readonly SweepSummary[]): string[] {
  return Object.keys(summaries[0]?.settings ?? {})
}
