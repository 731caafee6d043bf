/** The metrics of one run. */
import { For, type JSX } from 'solid-js'
import { UNKNOWN } from '../../format/figures.ts'
import { save } from '../../charts/save.ts'
import { figuresOfReport } from './figures.ts'

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
      <div class="scroll" tabindex="0" role="group" aria-label="Metrics of the run">
        <table>
          <tbody>
            <For each={[...figuresOfReport(props.report)].slice(0, 150)}>
              {([name, cell]) => (
                <tr>
                  <th scope="row">{name.replaceAll('_', ' ')}</th>
                  <td class="text">{cell ?? UNKNOWN}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  )
}
