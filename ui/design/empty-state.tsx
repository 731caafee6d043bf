/** Instead of a list without items: what is missing, and the next step. */
import { Show, type JSX } from 'solid-js'
import styles from './empty-state.module.css'
import { Icon } from './icon.tsx'
import type { IconName } from './icon-names.ts'

export interface EmptyStateProps {
  readonly icon: IconName
  readonly title: string
  readonly children?: JSX.Element
}

export function EmptyState(props: EmptyStateProps): JSX.Element {
  return (
    <div class={`card ${styles['empty']}`}>
      <Icon of={props.icon} />
      <p class={styles['title']}>{props.title}</p>
      <Show when={props.children}>
        <div class="quiet">{props.children}</div>
      </Show>
    </div>
  )
}
