/**
 * Text from the server: parts in backticks are shown as code. Everything is inserted as text, so markup stays
 * text.
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
