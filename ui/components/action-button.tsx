/**
 * A button that says why it cannot be pressed. It can still be reached with the keyboard, so that whoever
 * comes there hears the reason.
 */
import { createUniqueId, Show, type JSX } from 'solid-js'

export interface ActionButtonProps {
  readonly children: JSX.Element
  readonly onClick: () => void
  /** null: it can. */
  readonly whyNot: string | null
  readonly class?: string
}

export function ActionButton(props: ActionButtonProps): JSX.Element {
  const id = createUniqueId()
  return (
    <>
      <button
        type="button"
        class={props.class}
        aria-disabled={props.whyNot === null ? undefined : 'true'}
        aria-describedby={props.whyNot === null ? undefined : id}
        title={props.whyNot ?? undefined}
        onClick={() => props.whyNot === null && props.onClick()}
      >
        {props.children}
      </button>
      <Show when={props.whyNot}>
        {(reason) => (
          <span id={id} class="visually-hidden">
            {reason()}
          </span>
        )}
      </Show>
    </>
  )
}
