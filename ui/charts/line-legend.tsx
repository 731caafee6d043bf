/** Legend of a chart over time: each line can be hidden, and has its last, lowest and highest value. */
import { For, type JSX } from 'solid-js'
import { figuresOf, type Column } from './series-data.ts'
import styles from './line-legend.module.css'

export interface LegendLine {
  readonly name: string
  readonly colour: string
  readonly isDashed?: boolean
  readonly format: (value: number | null) => string
}

export interface LineLegendProps {
  /** Name of the chart. */
  readonly name: string
  readonly lines: readonly LegendLine[]
  /** One column of values for each line. */
  readonly columns: readonly Column[]
  readonly hidden: ReadonlySet<string>
  readonly onToggle: (name: string) => void
}

export function LineLegend(props: LineLegendProps): JSX.Element {
  return (
    <table class={styles['legend']} aria-label={`Legend of ${props.name}`}>
      <thead>
        <tr>
          <th scope="col">
            <span class="visually-hidden">line</span>
          </th>
          <For each={['last', 'min', 'max']}>
            {(name) => (
              <th scope="col" class="number">
                {name}
              </th>
            )}
          </For>
        </tr>
      </thead>
      <tbody>
        <For each={props.lines}>
          {(line, index) => <Line {...props} line={line} column={props.columns[index()] ?? []} />}
        </For>
      </tbody>
    </table>
  )
}

interface LineProps extends LineLegendProps {
  readonly line: LegendLine
  readonly column: Column
}

function Line(props: LineProps): JSX.Element {
  const isShown = (): boolean => !props.hidden.has(props.line.name)
  const figures = (): readonly (number | null)[] => figuresOf(props.column)
  return (
    <tr classList={{ [styles['hidden'] as string]: !isShown() }}>
      <th scope="row">
        <button
          aria-pressed={isShown()}
          title={isShown() ? 'Hide this line' : 'Show this line'}
          onClick={() => props.onToggle(props.line.name)}
        >
          <i
            classList={{ [styles['dashed'] as string]: props.line.isDashed === true }}
            ref={(key) => key.style.setProperty('--key', `var(${props.line.colour})`)}
          />{' '}
          {props.line.name}
        </button>
      </th>
      <For each={figures()}>{(figure) => <td class="number">{props.line.format(figure)}</td>}</For>
    </tr>
  )
}
