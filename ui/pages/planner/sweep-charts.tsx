/** Utilization and starvation over the percentage with their bands, and against each other. */
import { createMemo, type JSX } from 'solid-js'
import { CurveChart } from '../../charts/curve-chart.tsx'
import { percent } from '../../format/figures.ts'
import type { Combination } from './combinations.ts'
import { curvesOf, marksOf, paretoOf } from './curves.ts'
import styles from './planner.module.css'

/** `current` is the percentage of the live cluster; null: unknown. */
export function SweepCharts(props: {
  readonly combination: Combination
  readonly current: number | null
}): JSX.Element {
  const curves = createMemo(() => curvesOf(props.combination.runs))
  const marks = createMemo(() => marksOf(props.combination.advice, props.current))
  const pareto = createMemo(() => paretoOf(props.combination.runs, marks()))
  return (
    <div class={styles['charts']}>
      <section class="card">
        <CurveChart
          name="By overcommit percentage"
          xName="Overcommit, percent"
          yName="percent"
          x={curves().x}
          curves={[
            { name: 'Utilization, median and p10–p90', colour: '--utilization', ...curves().utilization },
            { name: 'Starvation, median and p10–p90', colour: '--queue', ...curves().starvation },
          ]}
          marks={marks()}
          describe={(index) =>
            `${curves().x[index]}%: utilization ${percent(curves().utilization.values[index])} ` +
            `(${percent(curves().utilization.band[0][index])} to ` +
            `${percent(curves().utilization.band[1][index])}), starvation ` +
            `${percent(curves().starvation.values[index])} ` +
            `(${percent(curves().starvation.band[0][index])} to ` +
            `${percent(curves().starvation.band[1][index])})`
          }
        />
      </section>
      <section class="card">
        <CurveChart
          name="Utilization against starvation"
          xName="Utilization, median, percent"
          yName="Starvation, median, percent"
          x={pareto().x}
          curves={[
            { name: 'Not dominated', colour: '--good', values: pareto().best },
            { name: 'Dominated', colour: '--foreign', values: pareto().others },
          ]}
          names={pareto().names}
          describe={(index) =>
            `Overcommit ${pareto().names[index]}: utilization ${percent(pareto().x[index])}, ` +
            `starvation ${percent(pareto().best[index] ?? pareto().others[index])}`
          }
        />
      </section>
    </div>
  )
}
