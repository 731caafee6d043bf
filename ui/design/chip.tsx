/** A state as a dot and a word: the colour never carries the meaning alone. */
import type { JSX } from 'solid-js'
import styles from './chip.module.css'

export type Tone = 'running' | 'pending' | 'failed' | 'cancelled' | 'out' | 'accent'

export function Chip(props: { readonly tone: Tone; readonly children: JSX.Element }): JSX.Element {
  return (
    <span class={styles['chip']} data-tone={props.tone}>
      {props.children}
    </span>
  )
}
