/**
 * A button that states why it is disabled. It stays focusable, so that keyboard users can read the reason.
 */
import { createUniqueId, Show, type JSX } from 'solid-js'

export interface ActionButtonProps {
  readonly children: JSX.Element
  readonly onClick: () => void
  /** null: enabled. */
  readonly whyNot: string | null
  readonly class?: string
  /** Says more than the text of the button, as its name and its title. */
  readonly label?: string
  /** submit: for the form that it is in. */
  readonly type?: 'button' | 'submit'
}

export function ActionButton(props: ActionButtonProps): JSX.Element {
  const id = createUniqueId()
  return (
    <>
      <button
        type={props.type ?? 'button'}
        class={props.class}
        aria-disabled={props.whyNot === null ? undefined : 'true'}
        aria-describedby={props.whyNot === null ? undefined : id}
        aria-label={props.label}
        title={props.whyNot ?? props.label}
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
