/**
 * Views of one list, each with its own address. These are plain links, because `A` of the router compares
 * paths without queries.
 */
import { For, Show, type JSX } from 'solid-js'
import { whole } from '../format/figures.ts'
import styles from './tab-links.module.css'

export interface TabLink {
  readonly name: string
  readonly href: string
  readonly isCurrent: boolean
  /** null: unknown. Omitted: no count. */
  readonly count?: number | null
}

export function TabLinks(props: { readonly name: string; readonly tabs: readonly TabLink[] }): JSX.Element {
  return (
    <nav aria-label={props.name}>
      <ul class={styles['tabs']}>
        <For each={props.tabs}>
          {(tab) => (
            <li>
              <a href={tab.href} aria-current={tab.isCurrent ? 'page' : undefined}>
                {tab.name}
                <Show when={tab.count !== undefined}>
                  {' '}
                  <span class={styles['count']}>{whole(tab.count)}</span>
                </Show>
              </a>
            </li>
          )}
        </For>
      </ul>
    </nav>
  )
}
