/** The keys over the page. */
import { CloseButton, Content, Overlay, Portal, Root, Title } from '@kobalte/core/dialog'
import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'
import { usePath } from '../api/world.ts'
import dialog from '../design/dialog.module.css'
import { KeyList } from './key-list.tsx'

export default function KeysDialog(props: { readonly onClose: (hasMoved: boolean) => void }): JSX.Element {
  const path = usePath()
  return (
    <Root open onOpenChange={(isOpen) => !isOpen && props.onClose(false)}>
      <Portal>
        <Overlay class={dialog['overlay']} />
        <div class={dialog['place']}>
          <Content class={dialog['dialog']}>
            <Title class={dialog['title']}>Keyboard shortcuts</Title>
            <section aria-label="Keyboard shortcuts">
              <KeyList />
            </section>
            <div class={dialog['buttons']}>
              <A class="button" href={path('/glossary')} onClick={() => props.onClose(true)}>
                Glossary
              </A>
              <CloseButton>Close</CloseButton>
            </div>
          </Content>
        </div>
      </Portal>
    </Root>
  )
}
