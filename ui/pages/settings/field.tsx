import { For, Show, type JSX } from 'solid-js'
import {
  rangeOf,
  shown,
  textOf,
  titleOf,
  type FieldInfo,
  type FieldValue,
} from '../../format/config-fields.ts'
import { whole } from '../../format/figures.ts'
import styles from './settings.module.css'

/** End of the slider: higher percentages are rare, and the field accepts them. */
const SLIDER_TO = 200

export interface FieldProps {
  readonly field: FieldInfo
  readonly text: string
  readonly live: FieldValue
  readonly problem: string | null
  readonly onType: (text: string) => void
}

export function Field(props: FieldProps): JSX.Element {
  const id = () => `field-${props.field.name}`
  const isSlider = (): boolean => props.field.name === 'default_vram_overcommit_percent'
  const described = () => `${id()}-help ${id()}-problem`
  return (
    <div class={styles['field']}>
      <label for={id()}>
        <Show when={titleOf(props.field.name)} fallback={<code>{props.field.name}</code>}>
          {(title) => (
            <>
              {title()} <code class="quiet">{props.field.name}</code>
            </>
          )}
        </Show>
      </label>
      <div class="row">
        <Show
          when={props.field.choices}
          fallback={
            <input
              id={id()}
              inputmode="numeric"
              autocomplete="off"
              value={props.text}
              aria-invalid={props.problem !== null}
              aria-describedby={described()}
              onInput={(event) => props.onType(event.currentTarget.value)}
            />
          }
        >
          {(choices) => (
            <select
              id={id()}
              value={props.text}
              aria-describedby={described()}
              onChange={(event) => props.onType(event.currentTarget.value)}
            >
              <For each={choices()}>{(choice) => <option value={choice}>{choice}</option>}</For>
            </select>
          )}
        </Show>
        <Show when={isSlider()}>
          <input
            type="range"
            aria-label="Overcommit, percent"
            min={props.field.min}
            max={Math.max(SLIDER_TO, Number(textOf(props.live)))}
            step="5"
            value={Number.isInteger(Number(props.text)) ? props.text : '0'}
            onInput={(event) => props.onType(event.currentTarget.value)}
          />
        </Show>
        <Show when={props.text !== textOf(props.live)}>
          <span class="warn">current: {shown(props.live)}</span>
        </Show>
      </div>
      <p id={`${id()}-problem`} class="bad" role={props.problem === null ? undefined : 'alert'}>
        {props.problem}
      </p>
      <p id={`${id()}-help`} class="quiet">
        {meaningOf(props.field)}. {capitalised(rangeOf(props.field))}; default {shownInText(props.field)}.
      </p>
    </div>
  )
}

/** A field of the page is empty where a value of the API is null. */
function meaningOf({ meaning }: FieldInfo): string {
  return meaning.replace(/; null: /, '; empty: ')
}

function shownInText({ byDefault }: FieldInfo): string {
  if (byDefault === null) return 'empty'
  return typeof byDefault === 'number' ? whole(byDefault) : byDefault
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
