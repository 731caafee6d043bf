/** Compares up to six results side by side; only differences are shown. */
import { Show, type Accessor, type JSX } from 'solid-js'
import { UNKNOWN } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { save } from '../../charts/save.ts'
import { differencesCsv, differencesOf, type Cell, type Compared, type Difference } from './figures.ts'

/** A longer table would not be readable. */
const MAX_ROWS = 100

export function Comparison(props: { readonly compared: readonly Compared[] }): JSX.Element {
  const differences = () => differencesOf(props.compared)
  const figures = (): number => new Set(props.compared.flatMap((each) => [...each.figures.keys()])).size
  const columns = (): readonly Column<Difference>[] => [
    { name: 'Metric', isRowHeading: true, class: 'text', cell: (row) => row().figure.replaceAll('_', ' ') },
    ...props.compared.map(({ name }, at) => ({
      name,
      isNumber: true,
      cell: (row: Accessor<Difference>) => words(row().cells[at]),
    })),
  ]
  return (
    <section class="card" aria-label="Comparison">
      <h2>Differences</h2>
      <Show
        when={differences().length > 0}
        fallback={<p>No differences in {figures()} metrics, including the run hashes.</p>}
      >
        <p class="row">
          <button
            onClick={() =>
              save('differences.csv', new Blob([differencesCsv(props.compared)], { type: 'text/csv' }))
            }
          >
            Save differences as CSV
          </button>
          <span class="quiet">
            {differences().length} of {figures()} metrics differ
            {differences().length > MAX_ROWS ? `; the first ${MAX_ROWS} are shown` : ''}.
          </span>
        </p>
        <Table name="Differences" columns={columns()} rows={differences().slice(0, MAX_ROWS)} />
      </Show>
    </section>
  )
}

function words(cell: Cell | undefined): JSX.Element {
  if (cell === undefined || cell === null)
    return <span title="The run does not have this metric.">{UNKNOWN}</span>
  if (typeof cell === 'number')
    return <data value={String(cell)}>{Number.isInteger(cell) ? cell : cell.toFixed(3)}</data>
  return <span title={cell}>{cell.length > 24 ? `${cell.slice(0, 12)}…` : cell}</span>
}
