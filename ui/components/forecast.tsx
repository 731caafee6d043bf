/**
 * The forecast of a change by a simulation of the live state: one sentence, then the figures before and after
 * with the band of the difference.
 */
import { For, Show, type JSX } from 'solid-js'
import type { ChangeForecastBody } from '../../controller/api/schema/twin.ts'
import { CurveChart } from '../charts/curve-chart.tsx'
import { percent, seconds, UNKNOWN, whole } from '../format/figures.ts'

type Figure = 'queue_wait_s' | 'starvation_percent' | 'utilization_percent' | 'swap_outs_per_hour'

const ROWS: readonly (readonly [key: Figure, name: string, format: (value: number) => string])[] = [
  ['queue_wait_s', 'Queue wait', (value) => seconds(value)],
  ['starvation_percent', 'Starvation', (value) => percent(value)],
  ['utilization_percent', 'Utilization', (value) => percent(value)],
  ['swap_outs_per_hour', 'Swap-outs per hour', (value) => whole(value)],
]

/** Drawn over the forecast period: the figures that operators ask for first. */
const DRAWN: readonly (readonly [
  key: Figure,
  name: string,
  unit: string,
  format: (value: number) => string,
])[] = [
  ['starvation_percent', 'Starvation', 'percent', (value) => percent(value)],
  ['queue_wait_s', 'Queue wait', 'seconds', (value) => seconds(value)],
]

export function Forecast(props: { readonly forecast: ChangeForecastBody }): JSX.Element {
  return (
    <div class="stack">
      <p>{props.forecast.sentence}</p>
      <div class="pair">
        <For each={DRAWN}>
          {([key, name, unit, format]) => (
            <Course forecast={props.forecast} figure={key} name={name} unit={unit} format={format} />
          )}
        </For>
      </div>
      <Table forecast={props.forecast} />
      <Show when={props.forecast.assumes.length > 0}>
        <details>
          <summary>Assumptions</summary>
          <ul>
            <For each={props.forecast.assumes}>{(words) => <li class="text">{words}</li>}</For>
          </ul>
        </details>
      </Show>
    </div>
  )
}

interface CourseProps {
  readonly forecast: ChangeForecastBody
  readonly figure: Figure
  readonly name: string
  readonly unit: string
  readonly format: (value: number) => string
}

/** Median and band before and after, at the end of each interval. */
function Course(props: CourseProps): JSX.Element {
  const course = () => props.forecast.courses[props.figure]
  const x = () => props.forecast.courses.ends_seconds.map((at) => at / 60)
  const words = (value: number | null | undefined): string =>
    value === null || value === undefined ? UNKNOWN : props.format(value)
  const side = (name: 'before' | 'after', index: number): string => {
    const { p10, p50, p90 } = course()[name]
    return `${name} ${words(p50[index])} (${words(p10[index])} to ${words(p90[index])})`
  }
  return (
    <CurveChart
      name={`${props.name}, before and after`}
      xName="minutes from now"
      yName={props.unit}
      x={x()}
      curves={[
        {
          name: 'before',
          colour: '--foreign',
          values: course().before.p50,
          band: [course().before.p10, course().before.p90],
        },
        {
          name: 'after',
          colour: '--accent',
          values: course().after.p50,
          band: [course().after.p10, course().after.p90],
        },
      ]}
      describe={(index) =>
        `${seconds(props.forecast.courses.ends_seconds[index])} from now: ${side('before', index)}, ` +
        `${side('after', index)}`
      }
    />
  )
}

function Table(props: { readonly forecast: ChangeForecastBody }): JSX.Element {
  return (
    <div class="scroll" tabindex="0" role="group" aria-label="Forecast, before and after">
      <table>
        <thead>
          <tr>
            <th scope="col">Median of {props.forecast.runs} pairs of runs</th>
            <th scope="col" class="number">
              before
            </th>
            <th scope="col" class="number">
              after
            </th>
            <th scope="col">difference, 10th to 90th percentile</th>
          </tr>
        </thead>
        <tbody>
          <For each={ROWS}>
            {([key, name, format]) => (
              <tr>
                <td>{name}</td>
                <Show
                  when={props.forecast[key]}
                  fallback={
                    <td class="quiet" colspan="3">
                      — no data
                    </td>
                  }
                >
                  {(change) => (
                    <>
                      <td class="number">{format(change().before)}</td>
                      <td class="number">{format(change().after)}</td>
                      <td>
                        {change().verdict}, {signed(change().difference.p10, format)} to{' '}
                        {signed(change().difference.p90, format)}
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
  )
}

function signed(value: number, format: (value: number) => string): string {
  return value < 0 ? `−${format(-value)}` : `+${format(value)}`
}
