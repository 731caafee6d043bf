/** The data of a chart as a table, and chart and data as files. Created only when it is opened. */
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { CsvCell } from '../format/csv.ts'
import { saveCsv } from './save.ts'
import styles from './uplot-chart.module.css'

export interface ChartExportProps {
  /** Of the chart and of its files. */
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
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Table and export</summary>
      <Show when={isOpen()}>
        <p class="row">
          <button onClick={() => saveCsv(props.name, props.csv())}>Save as CSV</button>
          <button onClick={() => props.onPicture()}>Save as PNG</button>
        </p>
        <div
          class={`${styles['table']} scroll`}
          tabindex="0"
          role="group"
          aria-label={`Data of ${props.name}`}
        >
          <table>
            <thead>
              <tr>
                <For each={props.head}>
                  {(name, index) => (
                    <th scope="col" classList={{ number: index() > 0 }}>
                      {name}
                    </th>
                  )}
                </For>
              </tr>
            </thead>
            <tbody>
              <For each={props.shown()}>
                {(row) => (
                  <tr>
                    <For each={row}>
                      {(cell, index) => <td classList={{ number: index() > 0 }}>{cell}</td>}
                    </For>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </div>
      </Show>
    </details>
  )
}
