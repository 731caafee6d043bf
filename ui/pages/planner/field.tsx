/** A text field with its name, help and error. */
import { createUniqueId, Show, type JSX } from 'solid-js'
import styles from './planner.module.css'

export interface TextFieldProps {
  readonly name: string
  readonly value: string
  readonly onInput: (text: string) => void
  readonly help?: string
  readonly problem?: string | null
}

export function TextField(props: TextFieldProps): JSX.Element {
  const id = createUniqueId()
  return (
    <div class={styles['field']}>
      <label for={id}>{props.name}</label>
      <input
        id={id}
        value={props.value}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={(props.problem ?? null) !== null}
        aria-describedby={`${id}-help ${id}-problem`}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      <p id={`${id}-problem`} class="bad text">
        <Show when={props.problem}>{(words) => words()}</Show>
      </p>
      <p id={`${id}-help`} class="quiet">
        {props.help}
      </p>
    </div>
  )
}

/** A rounded figure with all its digits as data. */
export function Figure(props: {
  readonly value: number | null
  readonly shown: string
  readonly what?: string | undefined
}): JSX.Element {
  return (
    <data
      value={props.value === null ? '' : String(props.value)}
      title={props.value === null ? props.what : String(props.value)}
    >
      {props.shown}
    </data>
  )
}
