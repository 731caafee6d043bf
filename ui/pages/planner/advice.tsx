/** The recommendation as text, and a link that enters it in the settings without changing anything. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { AdviceBody, SweepSummaryBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import { Prose } from '../../components/prose.tsx'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { usePath } from '../../api/world.ts'
import styles from './planner.module.css'

/** The table below has all. */
const MAX_CHOICES = 8

/** @param props.name combination of other fields; empty: no other field is varied */
export function Advice(props: {
  readonly advice: AdviceBody
  readonly summary: readonly SweepSummaryBody[]
  readonly name: string
  /** Percentage of the live cluster; null: unknown. */
  readonly current: number | null
}): JSX.Element {
  const path = usePath()
  const sentences = (): readonly string[] => props.advice.text.split('\n')
  return (
    <section class="card" aria-label="Recommendation">
      <h2>Recommendation{props.name === '' ? '' : ` with ${props.name}`}</h2>
      <p class={`${styles['advice']} text`} data-recommended={String(props.advice.recommended_percent)}>
        <Prose text={sentences()[0] ?? ''} />
      </p>
      <Show
        when={props.advice.recommended_percent === null || props.advice.recommended_percent === props.current}
      >
        <Choices summary={props.summary} />
      </Show>
      <ul>
        <For each={sentences().slice(1)}>
          {(sentence) => (
            <li class="text">
              <Prose text={sentence} />
            </li>
          )}
        </For>
      </ul>
      <Show when={props.advice.recommended_percent !== null}>
        <Show
          when={props.advice.recommended_percent !== props.current}
          fallback={<p>The cluster already uses this percentage. No change is needed.</p>}
        >
          <p>
            <A class="button" href={path(`/settings?propose=${props.advice.recommended_percent}`)}>
              Propose {props.advice.recommended_percent}%
            </A>{' '}
            <span class="quiet">
              This enters the percentage in the settings. Nothing changes until you plan and apply it there.
            </span>
          </p>
        </Show>
      </Show>
    </section>
  )
}

/** Without another recommendation a percentage is picked by its outcome, unless all outcomes are equal. */
function Choices(props: { readonly summary: readonly SweepSummaryBody[] }): JSX.Element {
  const path = usePath()
  const outcome = (each: SweepSummaryBody): string =>
    [
      `utilization ${percent(each.utilization_percent?.mean)}`,
      `starvation ${percent(each.starvation_percent.total?.mean)}`,
      `p95 queue wait ${seconds(each.queue_wait_s.p95?.mean)}`,
      `${each.swaps_per_hour?.mean.toFixed(1) ?? UNKNOWN} swaps per hour`,
    ].join(', ')
  const differ = (): boolean => new Set(props.summary.map(outcome)).size > 1
  return (
    <Show when={differ()}>
      <p>Choose a percentage by its outcome:</p>
      <ul class={styles['choices']} aria-label="Percentages to propose">
        <For each={props.summary.slice(0, MAX_CHOICES)}>
          {(each) => (
            <li>
              <A class="button" href={path(`/settings?propose=${each.overcommit_percent}`)}>
                Propose {each.overcommit_percent}%
              </A>
              <span>{outcome(each)}</span>
            </li>
          )}
        </For>
      </ul>
    </Show>
  )
}
