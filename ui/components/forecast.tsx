/** What the simulation of the live state foretells of a change: in one sentence, then before and after with the band of the difference. */
import { For, Show, type JSX } from 'solid-js'
import { percent, seconds, whole } from '../format/figures.ts'

interface Change {
  readonly before: number
  readonly after: number
  readonly difference: { readonly p10: number; readonly p50: number; readonly p90: number }
  readonly verdict: string
}

const ROWS: readonly (readonly [key: string, name: string, format: (value: number) => string])[] = [
  ['queue_wait_s', 'Queue wait', (value) => seconds(value)],
  ['starvation_percent', 'Starvation', (value) => percent(value)],
  ['utilization_percent', 'Utilization', (value) => percent(value)],
  ['swap_outs_per_hour', 'Swap-outs per hour', (value) => whole(value)],
]

export function ForecastTable(props: { readonly forecast: object }): JSX.Element {
  const fields = () => props.forecast as Readonly<Record<string, unknown>>
  const changeOf = (key: string): Change | null => (fields()[key] as Change | null | undefined) ?? null
  return (
    <>
      <p>{String(fields()['sentence'] ?? '')}</p>
      <div class="scroll" tabindex="0" role="group" aria-label="Forecast, before and after">
        <table>
          <thead>
            <tr>
              <th scope="col">Median of {String(fields()['runs'] ?? '—')} runs</th>
              <th scope="col" class="number">
                before
              </th>
              <th scope="col" class="number">
                after
              </th>
              <th scope="col">the difference</th>
            </tr>
          </thead>
          <tbody>
            <For each={ROWS}>
              {([key, name, format]) => (
                <tr>
                  <td>{name}</td>
                  <Show
                    when={changeOf(key)}
                    fallback={
                      <td class="quiet" colspan="3">
                        — nothing was measured
                      </td>
                    }
                  >
                    {(change) => (
                      <>
                        <td class="number">{format(change().before)}</td>
                        <td class="number">{format(change().after)}</td>
                        <td>
                          {change().verdict}, {signed(change().difference.p10, format)} to {signed(change().difference.p90, format)}
                        </td>
                      </>
                    )}
                  </Show>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </>
  )
}

function signed(value: number, format: (value: number) => string): string {
  return value < 0 ? `−${format(-value)}` : `+${format(value)}`
}
