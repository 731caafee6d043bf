/** Compares up to six results side by side; only differences are shown. */
import { For, Show, type JSX } from 'solid-js'
import { UNKNOWN } from '../../format/figures.ts'
import { save } from '../../charts/save.ts'
import { differencesCsv, differencesOf, type Cell, type Compared } from './figures.ts'

/** A longer table would not be readable. */
const MAX_ROWS = 100

export function Comparison(props: { readonly compared: readonly Compared[] }): JSX.Element {
  const differences = () => differencesOf(props.compared)
  const figures = (): number => new Set(props.compared.flatMap((each) => [...each.figures.keys()])).size
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
        <div class="scroll" tabindex="0" role="group" aria-label="Differences">
          <table>
            <thead>
              <tr>
                <th scope="col">Metric</th>
                <For each={props.compared}>
                  {({ name }) => (
                    <th scope="col" class="number">
                      {name}
                    </th>
                  )}
                </For>
              </tr>
            </thead>
            <tbody>
              <For each={differences().slice(0, MAX_ROWS)}>
                {({ figure, cells }) => (
                  <tr>
                    <th scope="row" class="text">
                      {figure.replaceAll('_', ' ')}
                    </th>
                    <For each={cells}>{(cell) => <td class="number">{words(cell)}</td>}</For>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </div>
      </Show>
    </section>
  )
}

function words(cell: Cell | undefined): JSX.Element {
  if (cell === undefined || cell === null) return <span title="No such metric.">{UNKNOWN}</span>
  if (typeof cell === 'number')
    return <data value={String(cell)}>{Number.isInteger(cell) ? cell : cell.toFixed(3)}</data>
  return <span title={cell}>{cell.length > 24 ? `${cell.slice(0, 12)}…` : cell}</span>
}
