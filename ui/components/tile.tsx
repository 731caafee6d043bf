/**
 * One figure with its name. An unknown value is a dash with the reason; the help says how the value is
 * computed.
 */
import { Show, type JSX } from 'solid-js'
import { Tooltip } from '../design/tooltip.tsx'
import { UNKNOWN } from '../format/figures.ts'
import styles from './tile.module.css'

export interface TileProps {
  readonly name: string
  readonly value: string
  /** Why there is no value, or additional information. */
  readonly note?: string | null
  /** How the value is computed. */
  readonly help?: string
  /** Colour of the value. */
  readonly tone?: 'bad' | 'warn' | undefined
  readonly children?: JSX.Element
}

export function Tile(props: TileProps): JSX.Element {
  return (
    <section class={styles['tile']} aria-label={props.name}>
      <h2>
        {props.name}
        <Show when={props.help}>
          {(help) => <Tooltip name={`How ${props.name} is computed`}>{help()}</Tooltip>}
        </Show>
      </h2>
      <p class={`${styles['value']} ${props.tone ?? ''}`} classList={{ quiet: props.value === UNKNOWN }}>
        {props.value}
      </p>
      <Show when={props.note}>{(note) => <p class={styles['note']}>{note()}</p>}</Show>
      {props.children}
    </section>
  )
}
