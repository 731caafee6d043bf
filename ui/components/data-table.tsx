/**
 * A table of rows that the server sorted, filtered and paged. A row is created once for its id and only its
 * cells change, so focus stays. While the pointer or the focus is in the table no row moves, and a button
 * shows the number of pending updates.
 */
import { createMemo, createSignal, For, Show, type Accessor, type JSX } from 'solid-js'
import styles from './data-table.module.css'
import { stableRows, type StableRows } from './stable-rows.ts'

export interface Column<R> {
  readonly name: string
  readonly isNumber?: boolean
  /** Prose: the column does not shrink to single words. */
  readonly isWide?: boolean
  /** Explanation, shown as the title of the heading. */
  readonly help?: string
  readonly cell: (row: Accessor<R>) => JSX.Element
}

export interface DataTableProps<R> {
  /** Accessible name of the table. */
  readonly name: string
  readonly columns: readonly Column<R>[]
  readonly rows: readonly R[]
  readonly idOf: (row: R) => string
  /**
   * The request (filters, order, page) that the rows belong to. When it changes, the new rows are shown at
   * once.
   */
  readonly request?: string
}

/** Further rows are on the next page. */
export const MAX_ROWS = 150

interface Held<R> extends StableRows<R> {
  readonly of: string
  readonly released: number
}

export function DataTable<R>(props: DataTableProps<R>): JSX.Element {
  const [hasPointer, setPointer] = createSignal(false)
  const [hasFocus, setFocus] = createSignal(false)
  const [released, setReleased] = createSignal(0)
  const held = createMemo<Held<R> | undefined>((before) => {
    const fresh = { rows: props.rows.slice(0, MAX_ROWS), pending: 0 }
    const of = { of: props.request ?? '', released: released() }
    const isHeld = (hasPointer() || hasFocus()) && before?.of === of.of && before.released === of.released
    return { ...of, ...(isHeld ? stableRows(before.rows, fresh.rows, props.idOf) : fresh) }
  })
  const rows = (): readonly R[] => held()?.rows ?? []
  const byId = createMemo(() => new Map(rows().map((row) => [props.idOf(row), row])))
  const pending = (): number => held()?.pending ?? 0
  return (
    <>
      <p class={styles['pending']}>
        <Show when={pending() > 0}>
          <button onClick={() => setReleased(released() + 1)}>
            {pending()} {pending() === 1 ? 'update' : 'updates'} pending: show
          </button>
        </Show>
      </p>
      <div
        class="scroll"
        tabindex="0"
        role="group"
        aria-label={props.name}
        onPointerEnter={() => setPointer(true)}
        onPointerLeave={() => setPointer(false)}
        onFocusIn={() => setFocus(true)}
        onFocusOut={(event) =>
          setFocus(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget))
        }
      >
        <table class={styles['table']}>
          <thead>
            <tr>
              <For each={props.columns}>
                {(column) => (
                  <th scope="col" classList={{ number: column.isNumber === true }} title={column.help}>
                    {column.name}
                  </th>
                )}
              </For>
            </tr>
          </thead>
          <tbody>
            <For each={rows().map(props.idOf)}>
              {(id) => <Row columns={props.columns} row={byId().get(id)} />}
            </For>
          </tbody>
        </table>
      </div>
    </>
  )
}

function Row<R>(props: { readonly columns: readonly Column<R>[]; readonly row: R | undefined }): JSX.Element {
  // A removed row is read once more before it is disposed of.
  const row = createMemo<R>((before) => props.row ?? (before as R))
  return (
    <tr>
      <For each={props.columns}>
        {(column) => (
          <td
            classList={{
              number: column.isNumber === true,
              [styles['wide'] as string]: column.isWide === true,
            }}
          >
            {column.cell(row)}
          </td>
        )}
      </For>
    </tr>
  )
}
