/** Names and values. An unknown value is a dash; the reason is its title. */
import { For, type JSX } from 'solid-js'
import styles from './facts.module.css'

export interface Fact {
  readonly name: string
  readonly value: JSX.Element
  readonly title?: string | undefined
}

export function Facts(props: { readonly facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class={styles['facts']}>
      <For each={props.facts}>
        {(fact) => (
          <div>
            <dt>{fact.name}</dt>
            <dd class="text" title={fact.title}>
              {fact.value}
            </dd>
          </div>
        )}
      </For>
    </dl>
  )
}
