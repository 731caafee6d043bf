/**
 * The recommendation in words, and the way to propose it: a link that fills the field of the settings and
 * changes nothing.
 */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { AdviceBody } from '../../../controller/api/schema/sweep-report.ts'
import { Prose } from '../../components/prose.tsx'
import { usePath } from '../../api/world.ts'
import styles from './planner.module.css'

/** @param props.name of the combination of other fields; empty: none is varied */
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
            Propose {props.advice.recommended_percent} %
          </A>{' '}
          <span class="quiet">
            fills it in under Settings; nothing is changed until it is planned and applied there.
          </span>
        </p>
      </Show>
    </section>
  )
}
