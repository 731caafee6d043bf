import type { JSX } from 'solid-js'
import { TextField } from './field.tsx'
import styles from './planner.module.css'

type Texts<T> = { readonly percents: T; readonly seeds: T; readonly keep: T }

export interface GridFieldsProps {
  readonly texts: Texts<string>
  readonly problems: Texts<string | null>
  readonly onInput: (changed: Partial<Texts<string>>) => void
}

/** The fields for percentages, seeds and objectives. */
export function GridFields(props: GridFieldsProps): JSX.Element {
  return (
    <div class={styles['fields']}>
      <TextField
        name="Overcommit percentages"
        value={props.texts.percents}
        onInput={(percents) => props.onInput({ percents })}
        problem={props.problems.percents}
        help="0, 25, 50, or a range with a step: 0..100:25"
      />
      <TextField
        name="Seeds"
        value={props.texts.seeds}
        onInput={(seeds) => props.onInput({ seeds })}
        problem={props.problems.seeds}
        help="Each percentage is simulated with each seed. Ten seeds give more reliable results than two."
      />
      <TextField
        name="Objectives (must hold at the 95th percentile of seeds)"
        value={props.texts.keep}
        onInput={(keep) => props.onInput({ keep })}
        problem={props.problems.keep}
        help="starvation.total<=20, queue_wait.p95<=10m, slowdown.mean<=2, wake.p95<=5s, swaps_per_hour<=30"
      />
    </div>
  )
}
