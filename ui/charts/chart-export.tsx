/** The data of a chart as a table, and chart and data as files. Created only when it is opened. */
import { createSignal, Show, type JSX } from 'solid-js'
import { Table, type Column } from '../design/table.tsx'
import type { CsvCell } from '../format/csv.ts'
import { saveCsv } from './save.ts'
import styles from './line-chart.module.css'

export interface ChartExportProps {
  /** Name of the chart and of its files. */
  readonly name: string
  readonly head: readonly string[]
  /** Formatted rows; only the first ones if there are many. */
  readonly shown: () => readonly (readonly string[])[]
  /** All rows with all digits; the first row has the column names. */
  readonly csv: () => readonly (readonly CsvCell[])[]
  readonly onPicture: () => void
}

export function ChartExport(props: ChartExportProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false)
  const columns = (): readonly Column<readonly string[]>[] =>
    props.head.map((name, at) => ({ name, isNumber: at > 0, cell: (row) => row()[at] }))
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table and export</summary>
      <Show when={isOpen()}>
        <p class="row">
          <button onClick={() => saveCsv(props.name, props.csv())}>Save as CSV</button>
          <button onClick={() => props.onPicture()}>Save as PNG</button>
        </p>
        <Table
          name={`Data of ${props.name}`}
          class={styles['table']}
          columns={columns()}
          rows={props.shown()}
        />
      </Show>
    </details>
  )
}
