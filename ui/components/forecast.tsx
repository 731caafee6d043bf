/**
 * The forecast of a change by a simulation of the live state: one sentence, then the figures before and after
 * with the band of the difference.
 */
import { For, Show, type JSX } from 'solid-js'
import type { ChangeForecastBody } from '../../controller/api/twin/schema.ts'
import { CurveChart } from '../charts/curve-chart.tsx'
import { percent, seconds, UNKNOWN, whole } from '../format/figures.ts'
import { Table, type Column } from '../design/table.tsx'

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
      <Differences forecast={props.forecast} />
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

function Differences(props: { readonly forecast: ChangeForecastBody }): JSX.Element {
  type Row = (typeof ROWS)[number]
  const side = (name: 'before' | 'after'): Column<Row> => ({
    name,
    isNumber: true,
    cell: (row) => {
      const [key, , format] = row()
      const change = props.forecast[key]
      return change === null ? UNKNOWN : format(change[name])
    },
  })
  const columns = (): readonly Column<Row>[] => [
    { name: `Median of ${props.forecast.runs} pairs of runs`, cell: (row) => row()[1] },
    side('before'),
    side('after'),
    {
      name: 'difference, 10th to 90th percentile',
      cell: (row) => {
        const [key, , format] = row()
        const change = props.forecast[key]
        if (change === null) return 'no data'
        const { p10, p90 } = change.difference
        return `${change.verdict}, ${signed(p10, format)} to ${signed(p90, format)}`
      },
    },
  ]
  return <Table name="Forecast, before and after" columns={columns()} rows={ROWS} />
}

function signed(value: number, format: (value: number) => string): string {
  return value < 0 ? `−${format(-value)}` : `+${format(value)}`
}
