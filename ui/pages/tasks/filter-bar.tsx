/** Filters and order of the task list, kept in the URL. */
import { useSearchParams } from '@solidjs/router'
import { For, onCleanup, Show, type JSX } from 'solid-js'
import { FilterForm } from '../../design/filter-form.tsx'
import { chipsOf } from './filter-chips.tsx'
import { NameOptions } from './name-options.tsx'
import { reasonWords, WAIT_REASONS } from '../../format/reasons.ts'
import {
  canWait,
  isFiltered,
  sortsOf,
  TEXT_FILTERS,
  type TaskListQuery,
  type TextFilter,
} from './task-filter.ts'

const NAMES: Readonly<Record<TextFilter, string>> = {
  q: 'Name contains',
  node: 'Node (name or ID)',
  group: 'Group',
  owner: 'Owner',
  label: 'Label (team=vision)',
}

/** Pause in typing after which a filter applies. */
const TYPING_MS = 250

export function FilterBar(props: { readonly query: TaskListQuery }): JSX.Element {
  const [, setSearch] = useSearchParams()
  let timer: ReturnType<typeof setTimeout> | undefined
  onCleanup(() => clearTimeout(timer))
  /** Applies a filter while it is typed. */
  const typed = (name: TextFilter, value: string): void => {
    clearTimeout(timer)
    timer = setTimeout(() => set(name, value), TYPING_MS)
  }
  const set = (name: string, value: string): void => {
    clearTimeout(timer)
    setSearch({ [name]: value === '' ? null : value, cursor: null })
  }
  const clear = (): void =>
    setSearch({
      ...Object.fromEntries(TEXT_FILTERS.map((name) => [name, null])),
      without_owner: null,
      priority: null,
      reason: null,
      cursor: null,
    })
  return (
    <FilterForm name="Tasks" active={chipsOf(props.query).length}>
      <For each={TEXT_FILTERS}>
        {(name) => (
          <label>
            {NAMES[name]}{' '}
            <input
              type={name === 'q' ? 'search' : 'text'}
              size={name === 'q' ? 12 : 8}
              maxLength={name === 'label' ? 321 : 200}
              value={props.query[name] ?? ''}
              list={name === 'node' || name === 'owner' || name === 'group' ? `names-of-${name}` : undefined}
              onInput={(event) => typed(name, event.currentTarget.value)}
              onChange={(event) => set(name, event.currentTarget.value)}
            />
          </label>
        )}
      </For>
      <label>
        Priority{' '}
        <select
          value={String(props.query.priority ?? '')}
          onChange={(event) => set('priority', event.currentTarget.value)}
        >
          <option value="">all</option>
          <For each={['0', '1', '2', '3', '4']}>{(each) => <option value={each}>P{each}</option>}</For>
        </select>
      </label>
      <Show when={canWait(props.query.state)}>
        <label>
          Wait reason{' '}
          <select
            value={props.query.reason ?? ''}
            onChange={(event) => set('reason', event.currentTarget.value)}
          >
            <option value="">any reason</option>
            <For each={WAIT_REASONS}>{(each) => <option value={each}>{reasonWords(each)}</option>}</For>
          </select>
        </label>
      </Show>
      <label>
        Sort{' '}
        <select value={props.query.sort} onChange={(event) => set('sort', event.currentTarget.value)}>
          <For each={sortsOf(props.query.state)}>
            {({ value, name }) => <option value={value}>{name}</option>}
          </For>
        </select>
      </label>
      <NameOptions query={props.query} />
      <Show when={isFiltered(props.query)}>
        <button type="button" onClick={clear}>
          Clear filters
        </button>
      </Show>
    </FilterForm>
  )
}
