/** One more field of the scenario to vary, by its path. */
import { createUniqueId, For, type JSX } from 'solid-js'
import { TextField } from './field.tsx'
import { partsOf, type VariedField } from './varied-fields.ts'
import styles from './planner.module.css'

export interface OtherFieldProps {
  readonly fields: readonly VariedField[]
  /** Path of the field; empty: none. */
  readonly field: string
  readonly values: string
  readonly problem: string | null
  readonly onField: (field: string) => void
  readonly onValues: (values: string) => void
}

export function OtherField(props: OtherFieldProps): JSX.Element {
  const id = createUniqueId()
  const chosen = (): VariedField | undefined => props.fields.find(({ path }) => path === props.field)
  const isElsewhere = (): boolean => props.field !== '' && chosen() === undefined
  return (
    <div class={styles['fields']}>
      <div class={styles['field']}>
        <label for={id}>Other field to vary</label>
        <select
          id={id}
          aria-describedby={`${id}-help`}
          onChange={(event) => props.onField(event.currentTarget.value)}
        >
          <option value="" selected={props.field === ''}>
            None: vary only the percentage
          </option>
          {isElsewhere() ? (
            <option value={props.field} selected>
              {props.field}
            </option>
          ) : null}
          <For each={partsOf(props.fields)}>
            {([part, fields]) => (
              <optgroup label={part}>
                <For each={fields}>
                  {({ path }) => (
                    <option value={path} selected={path === props.field}>
                      {path}
                    </option>
                  )}
                </For>
              </optgroup>
            )}
          </For>
        </select>
        <p id={`${id}-help`} class="quiet text">
          {props.field === ''
            ? 'Path in the scenario, such as fleet.0.count for the number of nodes in the first fleet entry.'
            : isElsewhere()
              ? 'The chosen scenario does not have this field.'
              : `Value in the scenario: ${chosen()?.now ?? 'not set, so the default applies'}.`}
        </p>
      </div>
      {props.field === '' ? null : (
        <TextField
          name={`Values of ${props.field}`}
          value={props.values}
          onInput={props.onValues}
          problem={props.problem}
          help="2, 4, 8, or a range with a step: 60..300:60"
        />
      )}
    </div>
  )
}
