/** The columns of a CSV file and the fields of a task: guessed by their names, and chosen here. */
import { For, Show, type JSX } from 'solid-js'
import { missingOf, TASK_FIELDS, type Mapping } from './csv-columns.ts'
import styles from './planner.module.css'

export interface ColumnMappingProps {
  readonly columns: readonly string[]
  readonly mapping: Mapping
  readonly onMap: (mapping: Mapping) => void
}

export function ColumnMapping(props: ColumnMappingProps): JSX.Element {
  const choose = (field: (typeof TASK_FIELDS)[number]['field'], text: string): void => {
    const { [field]: _before, ...others } = props.mapping
    props.onMap(text === '' ? others : { ...others, [field]: Number(text) })
  }
  return (
    <fieldset aria-label="File columns">
      <div class={styles['fields']}>
        <For each={TASK_FIELDS}>
          {({ field, name, unit, isRequired }) => (
            <label class={styles['field']}>
              <span>
                {name} <span class="quiet">({unit})</span>
              </span>
              <select onChange={(event) => choose(field, event.currentTarget.value)}>
                <option value="" selected={props.mapping[field] === undefined}>
                  {isRequired ? 'Choose a column' : 'none'}
                </option>
                <For each={props.columns}>
                  {(column, at) => (
                    <option value={at()} selected={props.mapping[field] === at()}>
                      {column}
                    </option>
                  )}
                </For>
              </select>
            </label>
          )}
        </For>
      </div>
      <Show when={missingOf(props.mapping)}>{(words) => <p class="warn">{words()}</p>}</Show>
    </fieldset>
  )
}
