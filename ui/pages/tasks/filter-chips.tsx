/** The filters that apply, each with a button that removes it. */
import { useSearchParams } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import { Icon } from '../../design/icon.tsx'
import { reasonWords } from '../../format/reasons.ts'
import { TEXT_FILTERS, type TaskListQuery } from './task-filter.ts'
import styles from './tasks.module.css'

interface FilterChip {
  readonly name: string
  readonly words: string
}

/** The filters that apply, in the order of the filter bar. */
export function chipsOf(query: TaskListQuery): readonly FilterChip[] {
  const { priority, reason } = query
  return [
    ...TEXT_FILTERS.flatMap((name) => {
      const value = query[name]
      return value === undefined ? [] : [{ name, words: `${name === 'q' ? 'name' : name}: ${value}` }]
    }),
    ...(query.without_owner === true ? [{ name: 'without_owner', words: 'without owner (anonymous)' }] : []),
    ...(priority === undefined ? [] : [{ name: 'priority', words: `priority: P${priority}` }]),
    ...(reason === undefined ? [] : [{ name: 'reason', words: `reason: ${reasonWords(reason)}` }]),
  ]
}

export function FilterChips(props: { readonly query: TaskListQuery }): JSX.Element {
  const [, setSearch] = useSearchParams()
  const chips = (): readonly FilterChip[] => chipsOf(props.query)
  return (
    <Show when={chips().length > 0}>
      <ul class={styles['chips']} aria-label="Filters that apply">
        <For each={chips()}>
          {({ name, words }) => (
            <li>
              <span class="text">{words}</span>
              <button
                type="button"
                class="plain"
                aria-label={`Remove the filter ${words}`}
                onClick={() => setSearch({ [name]: null, cursor: null })}
              >
                <Icon of="x" />
              </button>
            </li>
          )}
        </For>
      </ul>
    </Show>
  )
}
