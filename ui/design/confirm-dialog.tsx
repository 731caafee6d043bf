/**
 * A confirmation dialog that states the effects of a change. It stays open and shows the error if the request
 * is rejected.
 */
import { createSignal, createUniqueId, Show, type JSX } from 'solid-js'
import { ActionButton } from './action-button.tsx'
import styles from './dialog.module.css'
import { Modal } from './modal.tsx'
import { Problem } from './problem.tsx'
import { errorText } from '../api/error-text.ts'

export interface ConfirmDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  /** The effects of the change. */
  readonly children: JSX.Element
  /** Label of the confirm button. */
  readonly confirm: string
  readonly isDanger?: boolean
  /** Why it cannot be confirmed; null: it can. */
  readonly whyNot?: string | null
  /** Performs the change. An error is shown; otherwise the dialog closes. */
  readonly run: () => Promise<unknown>
}

export function ConfirmDialog(props: ConfirmDialogProps): JSX.Element {
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const close = (): void => {
    setProblem(null)
    props.onClose()
  }
  const run = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await props.run()
      close()
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  const id = createUniqueId()
  return (
    <Show when={props.isOpen}>
      <Modal title={props.title} class={styles['dialog'] ?? ''} question={id} onClose={close}>
        <h2 class={`${styles['title']} text`}>{props.title}</h2>
        <div id={id} class="text">
          {props.children}
        </div>
        <Problem text={problem()} />
        <div class={styles['buttons']}>
          <button onClick={close}>Dismiss</button>
          <ActionButton
            class={props.isDanger === true ? 'danger' : 'primary'}
            whyNot={isBusy() ? 'In progress.' : (props.whyNot ?? null)}
            onClick={() => void run()}
          >
            {props.confirm}
          </ActionButton>
        </div>
      </Modal>
    </Show>
  )
}

export interface ConfirmedActionProps extends Omit<ConfirmDialogProps, 'isOpen' | 'onClose' | 'whyNot'> {
  /** Label of the button that opens the dialog. */
  readonly label: string
  /** Why the action is not possible in this state or for this user; null: it is possible. */
  readonly whyNot: string | null
  readonly onOpenChange?: (isOpen: boolean) => void
}

/** A button that opens a confirmation dialog. */
export function ConfirmedAction(props: ConfirmedActionProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false)
  const change = (open: boolean): void => {
    setOpen(open)
    props.onOpenChange?.(open)
  }
  return (
    <>
      <ActionButton
        class={props.isDanger === true ? 'danger' : ''}
        whyNot={props.whyNot}
        onClick={() => change(true)}
      >
        {props.label}
      </ActionButton>
      <ConfirmDialog {...props} whyNot={null} isOpen={isOpen()} onClose={() => change(false)} />
    </>
  )
}
