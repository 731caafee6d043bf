/**
 * A dialog over the page, by the browser's `<dialog>`: the page behind is inert, the focus stays inside and
 * returns at the end, and Esc closes it.
 */
import { onCleanup, onMount, type JSX } from 'solid-js'
import { Portal } from 'solid-js/web'
import styles from './modal.module.css'

export interface ModalProps {
  readonly title: string
  readonly class: string
  readonly onClose: () => void
  /** ID of the text of a question. A click outside of a question does not close it. */
  readonly question?: string
  readonly children: JSX.Element
}

export function Modal(props: ModalProps): JSX.Element {
  return (
    <Portal>
      <Dialog {...props} />
    </Portal>
  )
}

/** Inside the portal it is closed before the portal removes it: the browser then returns the focus. */
function Dialog(props: ModalProps): JSX.Element {
  let dialog!: HTMLDialogElement
  let isOpen = true
  const close = (): void => {
    if (isOpen) props.onClose()
  }
  const isOutside = ({ target, clientX: x, clientY: y }: MouseEvent): boolean => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect()
    return target === dialog && (x < left || x > right || y < top || y > bottom)
  }
  // A selection of text may begin inside and end outside.
  let hasBegunOutside = false
  const onMouseDown = (event: MouseEvent): void => {
    hasBegunOutside = isOutside(event)
    if (hasBegunOutside) event.preventDefault()
  }
  const onClick = (event: MouseEvent): void => {
    if (props.question === undefined && hasBegunOutside && isOutside(event)) close()
  }
  // The state of the page decides what is open. A browser may close a dialog all the same (`close`).
  const onCancel = (event: Event): void => {
    event.preventDefault()
    close()
  }
  onMount(() => dialog.showModal())
  onCleanup(() => {
    isOpen = false
    dialog.close()
  })
  return (
    <dialog
      ref={dialog}
      class={`${styles['modal']} ${props.class}`}
      role={props.question === undefined ? undefined : 'alertdialog'}
      aria-label={props.title}
      aria-describedby={props.question}
      on:cancel={onCancel}
      on:close={close}
      onMouseDown={onMouseDown}
      onClick={onClick}
    >
      {props.children}
    </dialog>
  )
}
