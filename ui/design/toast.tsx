/** Short messages at the bottom of the window, with Undo where a change can be taken back. */
import { createSignal, For, Show, type JSX } from 'solid-js'
import styles from './toast.module.css'
import { errorText } from '../api/error-text.ts'

export interface ToastMessage {
  readonly text: string
  /** Takes the change back; an error is shown instead of the message. */
  readonly undo?: () => Promise<string>
}

interface Shown extends ToastMessage {
  readonly id: number
}

/** How long a change can be taken back here. */
const UNDO_MS = 30_000
const MESSAGE_MS = 6_000
/** The oldest is removed for a further one. */
const MAX_SHOWN = 3

const [shown, setShown] = createSignal<readonly Shown[]>([])
let count = 0

export function toast(message: ToastMessage): void {
  const id = (count += 1)
  setShown([...shown(), { ...message, id }].slice(-MAX_SHOWN))
  setTimeout(() => close(id), message.undo === undefined ? MESSAGE_MS : UNDO_MS)
}

function close(id: number): void {
  setShown(shown().filter((each) => each.id !== id))
}

/** The place of the messages: once on the page. */
export function Toasts(): JSX.Element {
  return (
    <div class={styles['place']} role="status" aria-live="polite">
      <For each={shown()}>{(message) => <Toast message={message} />}</For>
    </div>
  )
}

function Toast(props: { readonly message: Shown }): JSX.Element {
  const undo = async (): Promise<void> => {
    const { id, undo: takeBack } = props.message
    close(id)
    try {
      toast({ text: (await takeBack?.()) ?? 'Undone.' })
    } catch (error) {
      toast({ text: errorText(error) })
    }
  }
  return (
    <p class={styles['toast']}>
      <span class="text">{props.message.text}</span>
      <Show when={props.message.undo}>
        <button onClick={() => void undo()}>Undo</button>
      </Show>
      <button aria-label="Dismiss message" onClick={() => close(props.message.id)}>
        ×
      </button>
    </p>
  )
}
