/** A form over the page, which stays visible: the focus stays inside, and Esc closes it. */
import { Dialog } from '@kobalte/core/dialog'
import { X } from 'lucide'
import type { JSX } from 'solid-js'
import { Icon } from './icon.tsx'
import styles from './drawer.module.css'

export interface DrawerProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  readonly children: JSX.Element
}

export function Drawer(props: DrawerProps): JSX.Element {
  return (
    <Dialog open={props.isOpen} onOpenChange={(isOpen) => !isOpen && props.onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay class={styles['overlay']} />
        <Dialog.Content class={styles['drawer']}>
          <header class={styles['head']}>
            <Dialog.Title class={styles['title']}>{props.title}</Dialog.Title>
            <Dialog.CloseButton class="plain" aria-label="Close">
              <Icon of={X} />
            </Dialog.CloseButton>
          </header>
          {props.children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog>
  )
}
