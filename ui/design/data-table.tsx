/**
 * A table of rows that the server sorted, filtered and paged. While the pointer or the focus is in the table
 * no row moves, and a button shows the number of pending updates.
 */
import { createEffect, createMemo, createSignal, on, Show, type JSX } from 'solid-js'
import styles from './table.module.css'
import { stableRows, type StableRows } from './stable-rows.ts'
import { Table, type TableProps } from './table.tsx'

export interface DataTableProps<R> extends Pick<TableProps<R>, 'name' | 'columns' | 'rows' | 'sort'> {
  readonly idOf: (row: R) => string
  /**
   * The request (filters, order, page) that the rows belong to. When it changes, the new rows are shown at
   * once.
   */
  readonly request?: string
}

/** Further rows are on the next page. */
const MAX_ROWS = 150

interface Kept<R> extends StableRows<R> {
  readonly request: string
  readonly released: number
}

export function DataTable<R>(props: DataTableProps<R>): JSX.Element {
  const [isInUse, setInUse] = createSignal(false)
  const [released, setReleased] = createSignal(0)
  const kept = createMemo<Kept<R>>((before) => {
    const fresh = { rows: props.rows.slice(0, MAX_ROWS), pending: 0 }
    const of = { request: props.request ?? '', released: released() }
    const isKept = isInUse() && before?.request === of.request && before.released === of.released
    return { ...of, ...(isKept ? stableRows(before.rows, fresh.rows, props.idOf) : fresh) }
  })
  return (
    <>
      <p class={styles['pending']}>
        <Show when={kept().pending > 0}>
          <button onClick={() => setReleased(released() + 1)}>
            Show {kept().pending} pending {kept().pending === 1 ? 'update' : 'updates'}
          </button>
        </Show>
      </p>
      <UseArea onChange={setInUse}>
        <Table {...props} rows={kept().rows} isFramed />
      </UseArea>
    </>
  )
}

/** Reports whether the pointer or the focus is inside. */
export function UseArea(props: {
  readonly onChange: (isInUse: boolean) => void
  readonly children: JSX.Element
}): JSX.Element {
  const [hasPointer, setPointer] = createSignal(false)
  const [hasFocus, setFocus] = createSignal(false)
  createEffect(on([hasPointer, hasFocus], (uses) => props.onChange(uses.includes(true)), { defer: true }))
  return (
    <div
      onPointerEnter={() => setPointer(true)}
      onPointerLeave={() => setPointer(false)}
      onFocusIn={() => setFocus(true)}
      onFocusOut={(event) =>
        setFocus(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget))
      }
    >
      {props.children}
    </div>
  )
}
