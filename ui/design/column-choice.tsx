/** Which columns of a table are shown: kept in this browser, and in the link. */
import { useSearchParams } from '@solidjs/router'
import { createSignal, For, Show, type Accessor, type JSX } from 'solid-js'
import { hiddenText, readHidden, withHidden } from './hidden-columns.ts'
import { Icon } from './icon.tsx'
import type { Column } from './table.tsx'
import styles from './column-choice.module.css'

export interface ColumnChoice<R> {
  readonly columns: Accessor<readonly Column<R>[]>
  /** The button with the list of columns. */
  readonly chooser: () => JSX.Element
}

/** @param key of the table in the storage of this browser. The first column is always shown. */
export function createColumnChoice<R>(
  key: Accessor<string>,
  all: Accessor<readonly Column<R>[]>,
): ColumnChoice<R> {
  const [search, setSearch] = useSearchParams<{ hide?: string }>()
  const [isOpen, setOpen] = createSignal(false)
  const storageKey = (): string => `headroom-columns-${key()}`
  const [stored, setStored] = createSignal(0)
  const hidden = (): readonly string[] => {
    stored()
    return readHidden(search.hide ?? localStorage.getItem(storageKey()) ?? '')
  }
  const show = (name: string, isShown: boolean): void => {
    const text = hiddenText(withHidden(hidden(), name, !isShown))
    localStorage.setItem(storageKey(), text)
    setStored(stored() + 1)
    setSearch({ hide: text === '' ? null : text }, { replace: true, scroll: false })
  }
  const choices = (): readonly Column<R>[] => all().slice(1)
  return {
    columns: () => all().filter(({ name }, at) => at === 0 || !hidden().includes(name)),
    chooser: () => (
      <details class={styles['chooser']} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="button">
          <Icon of="columns-3" />
          Columns
        </summary>
        <Show when={isOpen()}>
          <div class={styles['list']} role="group" aria-label="Columns shown">
            <For each={choices()}>
              {(column) => (
                <label>
                  <input
                    type="checkbox"
                    checked={!hidden().includes(column.name)}
                    onChange={(event) => show(column.name, event.currentTarget.checked)}
                  />{' '}
                  {column.name}
                </label>
              )}
            </For>
          </div>
        </Show>
      </details>
    ),
  }
}
