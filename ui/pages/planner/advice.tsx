/** The recommendation as text, and a link that enters it in the settings without changing anything. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { AdviceBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import { Prose } from '../../components/prose.tsx'
import { usePath } from '../../api/world.ts'
import styles from './planner.module.css'

/** @param props.name combination of other fields; empty: no other field is varied */
export function Advice(props: { readonly advice: AdviceBody; readonly name: string }): JSX.Element {
  const path = usePath()
  const sentences = (): readonly string[] => props.advice.text.split('\n')
  return (
    <section class="card" aria-label="Recommendation">
      <h2>Recommendation{props.name === '' ? '' : ` with ${props.name}`}</h2>
      <p class={`${styles['advice']} text`} data-recommended={String(props.advice.recommended_percent)}>
        <Prose text={sentences()[0] ?? ''} />
      </p>
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
        <p>
          <A class="button" href={path(`/settings?propose=${props.advice.recommended_percent}`)}>
            Propose {props.advice.recommended_percent}%
          </A>{' '}
          <span class="quiet">
            enters it in the settings. Nothing changes until it is planned and applied there.
          </span>
        </p>
      </Show>
    </section>
  )
}
