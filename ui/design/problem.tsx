/** A message about a failed action, announced when it appears. */
import { Show, type JSX } from 'solid-js'

/** @param props.text empty or absent: shows nothing */
export function Problem(props: { readonly text: string | null | undefined }): JSX.Element {
  return (
    <Show when={props.text}>
      {(text) => (
        <p class="bad text" role="alert">
          {text()}
        </p>
      )}
    </Show>
  )
}
