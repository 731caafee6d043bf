/**
 * Every run of a sweep as one row, with all digits, so that a recommendation can be recomputed from the table
 * (docs/planning.md).
 */
import type { SweepRun } from '../experiment/sweep/sweep.ts'
import { csvOf, writtenText } from '../results/csv.ts'

type Cell = string | number

type Column = readonly [name: string, valueOf: (run: SweepRun) => number | string | null | undefined]

const COLUMNS: readonly Column[] = [
  ['seed', (run) => run.seed],
  ['utilization_percent', ({ metrics }) => metrics.utilization_percent],
  ['starvation_percent', ({ metrics }) => metrics.starvation_percent.total],
  ['starvation_queue_percent', ({ metrics }) => metrics.starvation_percent.queue],
  ['starvation_swap_percent', ({ metrics }) => metrics.starvation_percent.swap],
  ['starvation_compute_percent', ({ metrics }) => metrics.starvation_percent.compute],
  ['queue_wait_mean_s', ({ metrics }) => metrics.queue_wait_s?.mean],
  ['queue_wait_p50_s', ({ metrics }) => metrics.queue_wait_s?.p50],
  ['queue_wait_p95_s', ({ metrics }) => metrics.queue_wait_s?.p95],
  ['queue_wait_p99_s', ({ metrics }) => metrics.queue_wait_s?.p99],
  ['slowdown_mean', ({ metrics }) => metrics.slowdown?.mean],
  ['slowdown_p95', ({ metrics }) => metrics.slowdown?.p95],
  ['swaps_per_hour', ({ metrics }) => metrics.swaps_per_hour],
  ['swapped_gib_per_hour', ({ metrics }) => metrics.swapped_gib_per_hour],
  ['swap_jain', ({ metrics }) => metrics.swap_jain],
  ['tasks_submitted', ({ metrics }) => metrics.tasks.submitted],
  ['tasks_completed', ({ metrics }) => metrics.tasks.completed],
  ['tasks_failed', ({ metrics }) => metrics.tasks.failed],
  ['tasks_unfinished', ({ metrics }) => metrics.tasks.unfinished],
  ['virtual_s', (run) => run.virtual_s],
  ['digest', (run) => run.digest],
]
/** Present if a run has them; the last columns, so that no other column moves. */
const OPTIONAL: readonly Column[] = [
  ['wake_p50_s', ({ metrics }) => metrics.wake_s?.p50],
  ['wake_p95_s', ({ metrics }) => metrics.wake_s?.p95],
  ['wake_p99_s', ({ metrics }) => metrics.wake_s?.p99],
  ['unsignalled_wait_percent', unsignalledWaitOf],
  ['unheard_percent', unsignalledWaitOf],
  ['tasks_fit_nowhere', ({ metrics }) => metrics.tasks.fit_nowhere],
]

/**
 * A metric that a run does not have is an empty cell. One column for each other varied field, named by its
 * path.
 */
export function runsCsv(runs: readonly SweepRun[]): string {
  const fields = Object.keys(runs[0]?.settings ?? {})
  const columns = [
    ...COLUMNS,
    ...OPTIONAL.filter(([, valueOf]) => runs.some((run) => valueOf(run) !== undefined)),
  ]
  return csvOf(
    ['overcommit_percent', ...fields, ...columns.map(([name]) => name)],
    runs.map((run): Cell[] => [
      run.overcommit_percent,
      ...fields.map((field) => writtenText(String(run.settings[field]))),
      ...columns.map(([, valueOf]) => valueOf(run) ?? ''),
    ]),
  )
}

/** A run that was recorded earlier has the metric under its former name only. */
function unsignalledWaitOf({ metrics }: SweepRun): number | undefined {
  return metrics.unsignalled_wait_percent ?? metrics.unheard_percent
}
