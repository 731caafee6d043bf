/**
 * One figure with its name. An unknown value is a dash with the reason; the help says how the value is
 * computed.
 */
import { Show, type JSX } from 'solid-js'
import { UNKNOWN } from '../format/figures.ts'
import styles from './tile.module.css'

export interface TileProps {
  readonly name: string
  readonly value: string
  /** Why there is no value, or additional information. */
  readonly note?: string | null
  /** How the value is computed. */
  readonly help?: string
  readonly children?: JSX.Element
}

export function Tile(props: TileProps): JSX.Element {
  return (
    <section class={`card ${styles['tile']}`} aria-label={props.name}>
      <h2>
        {props.name}
        <Show when={props.help}>
          {(help) => (
            <details class={styles['help']}>
              <summary aria-label={`How ${props.name} is computed`}>?</summary>
              <p>{help()}</p>
            </details>
          )}
        </Show>
      </h2>
      <p class={styles['value']} classList={{ quiet: props.value === UNKNOWN }}>
        {props.value}
      </p>
      <Show when={props.note}>{(note) => <p class="quiet">{note()}</p>}</Show>
      {props.children}
    </section>
  )
}
