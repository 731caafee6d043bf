/** A form over the page, which stays visible: the focus stays inside, and Esc closes it. */
// By name: the object `Dialog` is also that of the alert dialog, whose parts replace its own.
import { CloseButton, Content, Overlay, Portal, Root, Title } from '@kobalte/core/dialog'
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
    <Root open={props.isOpen} onOpenChange={(isOpen) => !isOpen && props.onClose()}>
      <Portal>
        <Overlay class={styles['overlay']} />
        <Content class={styles['drawer']}>
          <header class={styles['head']}>
            <Title class={styles['title']}>{props.title}</Title>
            <CloseButton class="plain" aria-label="Close">
              <Icon of={X} />
            </CloseButton>
          </header>
          {props.children}
        </Content>
      </Portal>
    </Root>
  )
}
