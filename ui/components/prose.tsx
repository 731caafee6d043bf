/**
 * Sentences of the server: what stands between backticks is shown as code. Everything is text, so markup in
 * it stays text.
 */
import { For, type JSX } from 'solid-js'
import { proseParts } from '../format/prose-parts.ts'

export function Prose(props: { readonly text: string }): JSX.Element {
  return (
    <For each={proseParts(props.text)}>
      {({ text, isCode }) => (isCode ? <code>{text}</code> : <>{text}</>)}
    </For>
  )
}
