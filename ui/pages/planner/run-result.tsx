/** The metrics of one run. */
import type { JSX } from 'solid-js'
import { UNKNOWN } from '../../format/figures.ts'
import { save } from '../../charts/save.ts'
import { Table, type Column } from '../../design/table.tsx'
import { figuresOfReport, type Cell } from './figures.ts'

const MAX_ROWS = 150

const COLUMNS: readonly Column<readonly [name: string, cell: Cell]>[] = [
  { name: 'Metric', isRowHeading: true, cell: (row) => row()[0].replaceAll('_', ' ') },
  { name: 'Value', class: 'text', cell: (row) => row()[1] ?? UNKNOWN },
]

export function RunResult(props: { readonly report: object }): JSX.Element {
  return (
    <section class="card" aria-label="Metrics">
      <h2>Metrics</h2>
      <p class="row">
        <button
          onClick={() =>
            save(
              'report.json',
              new Blob([JSON.stringify(props.report, null, 2)], { type: 'application/json' }),
            )
          }
        >
          Save as JSON
        </button>
      </p>
      <Table
        name="Metrics of the run"
        isHeadHidden
        columns={COLUMNS}
        rows={[...figuresOfReport(props.report)].slice(0, MAX_ROWS)}
        idOf={([name]) => name}
      />
    </section>
  )
}
