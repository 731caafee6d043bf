/** Finds tasks, nodes, groups, owners, pages, settings and actions, and opens or does them. */
import { useNavigate } from '@solidjs/router'
import { createEffect, createMemo, createSignal, createUniqueId, For, on, Show, type JSX } from 'solid-js'
import { usePath, useWorld } from '../../api/world.ts'
import { Modal } from '../../design/modal.tsx'
import { MAX_SHOWN, ranked, type Entry } from './entries.ts'
import styles from './palette.module.css'
import { useFound } from './use-found.ts'
import { useKnown } from './use-known.ts'

export interface PaletteProps {
  readonly pages: readonly { readonly path: string; readonly name: string }[]
  readonly onClose: (hasMoved: boolean) => void
  readonly typed: string
  readonly onFocus: () => void
}

export default function Palette(props: PaletteProps): JSX.Element {
  return (
    <Modal title="Find" class={styles['palette'] ?? ''} onClose={() => props.onClose(false)}>
      <Finder {...props} />
    </Modal>
  )
}

function Finder(props: PaletteProps): JSX.Element {
  const id = createUniqueId()
  const path = usePath()
  const { mode } = useWorld()
  const navigate = useNavigate()
  const [text, setText] = createSignal('')
  createEffect(() => setText(props.typed))
  const [at, setAt] = createSignal(0)
  const known = useKnown(() => props.pages, mode === 'live')
  const found = useFound(text)
  const shown = createMemo(() => ranked([...known(), ...found.entries()], text()))
  createEffect(on(text, () => setAt(0)))
  const current = (): number => Math.min(at(), shown().length - 1)
  const optionId = (index: number): string => `${id}-${index}`
  createEffect(() => document.getElementById(optionId(current()))?.scrollIntoView({ block: 'nearest' }))
  const open = (entry: Entry | undefined): void => {
    if (entry === undefined) return
    props.onClose(typeof entry.go === 'string')
    if (typeof entry.go === 'string') navigate(path(entry.go))
    else entry.go()
  }
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0 && shown().length > 0) setAt((current() + step + shown().length) % shown().length)
    else if (event.key === 'Enter') open(shown()[current()])
    else return
    event.preventDefault()
  }
  const words = (): string => {
    if (found.isBusy()) return 'Searching…'
    if (shown().length === 0) return 'Nothing matches.'
    return shown().length === MAX_SHOWN
      ? `Only the first ${MAX_SHOWN} results are shown.`
      : `${shown().length} found`
  }
  return (
    <>
      <input
        class={styles['input']}
        type="text"
        role="combobox"
        aria-label="Find anything"
        aria-expanded={shown().length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={shown().length > 0 ? optionId(current()) : undefined}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        maxLength="200"
        placeholder="Task, node, group, owner, page, setting or action"
        value={text()}
        onFocus={() => props.onFocus()}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <ul class={styles['list']} id={`${id}-list`} role="listbox" aria-label="Found" tabindex="-1">
        <For each={shown()}>
          {(entry, index) => (
            <li
              id={optionId(index())}
              role="option"
              aria-selected={index() === current()}
              onPointerMove={() => setAt(index())}
              onClick={() => open(entry)}
            >
              <span class={styles['kind']}>{entry.kind}</span>
              <span class={`${styles['name']} text`}>{entry.name}</span>
              <Show when={entry.detail}>
                <span class={`${styles['detail']} text`}>{entry.detail}</span>
              </Show>
            </li>
          )}
        </For>
      </ul>
      <p class={styles['foot']}>
        <span role="status">{found.problem() ?? words()}</span>
        <span aria-hidden="true">
          <kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> open · <kbd>Esc</kbd> close
        </span>
      </p>
    </>
  )
}
