/** A form over the page, which stays visible. */
import { Show, type JSX } from 'solid-js'
import styles from './drawer.module.css'
import { Icon } from './icon.tsx'
import { Modal } from './modal.tsx'

export interface DrawerProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  readonly children: JSX.Element
}

export function Drawer(props: DrawerProps): JSX.Element {
  return (
    <Show when={props.isOpen}>
      <Modal title={props.title} class={styles['drawer'] ?? ''} onClose={() => props.onClose()}>
        <header class={styles['head']}>
          <h2 class={styles['title']}>{props.title}</h2>
          <button class="plain" aria-label="Close" onClick={() => props.onClose()}>
            <Icon of="x" />
          </button>
        </header>
        {props.children}
      </Modal>
    </Show>
  )
}
