/** The keys over the page. */
import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'
import { usePath } from '../api/world.ts'
import dialog from '../design/dialog.module.css'
import { Modal } from '../design/modal.tsx'
import { KeyList } from './key-list.tsx'

export default function KeysDialog(props: { readonly onClose: (hasMoved: boolean) => void }): JSX.Element {
  const path = usePath()
  return (
    <Modal title="Keyboard shortcuts" class={dialog['dialog'] ?? ''} onClose={() => props.onClose(false)}>
      <h2 class={dialog['title']}>Keyboard shortcuts</h2>
      <section aria-label="Keyboard shortcuts">
        <KeyList />
      </section>
      <div class={dialog['buttons']}>
        <A class="button" href={path('/glossary')} onClick={() => props.onClose(true)}>
          Glossary
        </A>
        <button onClick={() => props.onClose(false)}>Close</button>
      </div>
    </Modal>
  )
}
