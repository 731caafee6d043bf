/** A row for each percentage: its results over the seeds, and whether it meets the objectives. */
import { Show, type JSX } from 'solid-js'
import type {
  CandidateBody,
  SweepSummaryBody,
} from '../../../controller/api/simulations/sweep-report-schema.ts'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { figureColumn, objectiveColumns } from './columns.tsx'
import type { Combination } from './combinations.ts'
import { Figure } from './field.tsx'
import styles from './planner.module.css'

/** Limit for the DOM. */
const MAX_ROWS = 100

interface Row {
  readonly candidate: CandidateBody
  readonly summary: SweepSummaryBody | undefined
}

interface Band {
  readonly mean: number
  readonly p10: number
  readonly p90: number
}

const UNSIGNALLED_WAIT: Column<Row> = {
  ...bandColumn('Unsignalled wait', ({ summary }) => summary?.unsignalled_wait_percent),
  help:
    'Time that swapped-out tasks waited because they could not signal that they had work. It is not part ' +
    'of starvation.',
}

export function PercentTable(props: { readonly combination: Combination }): JSX.Element {
  const rows = (): readonly Row[] =>
    props.combination.advice.candidates.slice(0, MAX_ROWS).map((candidate) => ({
      candidate,
      summary: props.combination.summary.find(
        ({ overcommit_percent }) => overcommit_percent === candidate.overcommit_percent,
      ),
    }))
  const hasUnsignalledWait = (): boolean =>
    props.combination.summary.some(
      ({ unsignalled_wait_percent }) => (unsignalled_wait_percent?.mean ?? 0) > 0,
    )
  const isRecommended = (candidate: CandidateBody): boolean =>
    candidate.overcommit_percent === props.combination.advice.recommended_percent
  const columns = (): readonly Column<Row>[] => [
    {
      name: 'Overcommit',
      isNumber: true,
      isRowHeading: true,
      cell: (row) => (
        <>
          {row().candidate.overcommit_percent}%
          {isRecommended(row().candidate) ? <span class="visually-hidden">, recommended</span> : null}
        </>
      ),
    },
    ...objectiveColumns<Row>(props.combination.advice.objectives, ({ candidate }) => candidate),
    bandColumn('Utilization', ({ candidate }) => candidate.utilization_percent),
    bandColumn('Starvation', ({ summary }) => summary?.starvation_percent.total),
    ...(hasUnsignalledWait() ? [UNSIGNALLED_WAIT] : []),
    figureColumn(
      'Queue wait p95',
      ({ summary }) => summary?.queue_wait_s.p95?.mean,
      seconds,
      'No task started.',
    ),
    figureColumn(
      'Wake p95',
      ({ summary }) => summary?.wake_s?.p95?.mean,
      seconds,
      'No swapped-out task returned to VRAM.',
    ),
    {
      name: 'Swaps per hour',
      isNumber: true,
      cell: (row) => row().summary?.swaps_per_hour?.mean.toFixed(1) ?? UNKNOWN,
    },
  ]
  return (
    <section class="card" aria-label="Percentages">
      <h2>Percentages</h2>
      <Show when={props.combination.advice.candidates.length > MAX_ROWS}>
        <p class="quiet">Only the first {MAX_ROWS} percentages are shown. The files contain all of them.</p>
      </Show>
      <Table
        id="percentages"
        name="Results for each percentage"
        columns={columns()}
        rows={rows()}
        idOf={({ candidate }) => candidate.overcommit_percent}
        rowClassOf={({ candidate }) => (isRecommended(candidate) ? styles['recommended'] : undefined)}
      />
    </section>
  )
}

function bandColumn(name: string, bandOf: (row: Row) => Band | null | undefined): Column<Row> {
  return {
    name: `${name}, mean (p10–p90)`,
    isNumber: true,
    cell: (row) => {
      const band = bandOf(row()) ?? null
      return (
        <>
          <Figure value={band?.mean ?? null} shown={percent(band?.mean)} />
          {band === null ? '' : ` (${band.p10.toFixed(1)}–${band.p90.toFixed(1)})`}
        </>
      )
    },
  }
}
