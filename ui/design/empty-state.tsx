/** Instead of a list without items: what is missing, and the next step. */
import type { IconNode } from 'lucide'
import { Show, type JSX } from 'solid-js'
import styles from './empty-state.module.css'
import { Icon } from './icon.tsx'

export interface EmptyStateProps {
  readonly icon: IconNode
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
