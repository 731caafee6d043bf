/** Nothing is changed without a dialog that says what will happen. A refusal is shown in it, and it stays. */
import { AlertDialog } from '@kobalte/core/alert-dialog'
import { createSignal, Show, type JSX } from 'solid-js'
import { ActionButton } from './action-button.tsx'
import styles from './confirm-dialog.module.css'

export interface ConfirmDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  /** What it will do. */
  readonly children: JSX.Element
  /** On the button that does it. */
  readonly confirm: string
  readonly isDanger?: boolean
  /** Why it cannot be confirmed as it stands; null: it can. */
  readonly whyNot?: string | null
  /** Does it. What it throws is shown; otherwise the dialog closes. */
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
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <AlertDialog open={props.isOpen} onOpenChange={(isOpen) => !isOpen && close()}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay class={styles['overlay']} />
        <div class={styles['place']}>
          <AlertDialog.Content class={styles['dialog']}>
            <AlertDialog.Title class={`${styles['title']} text`}>{props.title}</AlertDialog.Title>
            <AlertDialog.Description as="div" class="text">
              {props.children}
            </AlertDialog.Description>
            <Show when={problem()}>
              {(words) => (
                <p class="bad text" role="alert">
                  {words()}
                </p>
              )}
            </Show>
            <div class={styles['buttons']}>
              <AlertDialog.CloseButton aria-label="Leave it">Leave it</AlertDialog.CloseButton>
              <ActionButton
                class={props.isDanger === true ? 'danger' : 'primary'}
                whyNot={isBusy() ? 'It is being done.' : (props.whyNot ?? null)}
                onClick={() => void run()}
              >
                {props.confirm}
              </ActionButton>
            </div>
          </AlertDialog.Content>
        </div>
      </AlertDialog.Portal>
    </AlertDialog>
  )
}

export interface ConfirmedActionProps extends Omit<ConfirmDialogProps, 'isOpen' | 'onClose' | 'whyNot'> {
  /** On the button that opens the dialog. */
  readonly label: string
  /** Why it cannot be done, for whoever asks or as things are; null: it can. */
  readonly whyNot: string | null
  readonly onOpenChange?: (isOpen: boolean) => void
}

/** A button, and behind it the dialog. */
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
