/** Rows that are chosen for one action. They stay chosen on other pages of the list. */
import { createEffect, createSignal, type Accessor } from 'solid-js'
import type { Column } from './table.tsx'

/** One request for each of them follows. */
export const MAX_SELECTED = 200

export interface Selection<R> {
  readonly rows: Accessor<readonly R[]>
  /** A further row was refused. */
  readonly isFull: Accessor<boolean>
  clear(): void
  /** The column with a box for each row. */
  readonly column: Column<R>
}

export interface SelectionOptions<R> {
  readonly idOf: (row: R) => string
  readonly nameOf: (row: R) => string
  /** The rows of this page. */
  readonly shown: Accessor<readonly R[]>
}

export function createSelection<R>({ idOf, nameOf, shown }: SelectionOptions<R>): Selection<R> {
  const [chosen, setChosen] = createSignal<ReadonlyMap<string, R>>(new Map())
  const [isFull, setFull] = createSignal(false)
  const choose = (rows: readonly R[], isChosen: boolean): void => {
    const next = new Map(chosen())
    for (const row of rows) {
      if (!isChosen) next.delete(idOf(row))
      else if (next.size < MAX_SELECTED || next.has(idOf(row))) next.set(idOf(row), row)
    }
    setFull(isChosen && rows.some((row) => !next.has(idOf(row))))
    setChosen(next)
  }
  const countShown = (): number => shown().filter((row) => chosen().has(idOf(row))).length
  return {
    /** With their newest values, as far as these are shown. */
    rows: () => {
      const fresh = new Map(shown().map((row) => [idOf(row), row]))
      return [...chosen()].map(([id, row]) => fresh.get(id) ?? row)
    },
    isFull,
    clear: () => {
      setChosen(new Map())
      setFull(false)
    },
    column: {
      name: 'Selection',
      heading: () => (
        <input
          type="checkbox"
          aria-label="Select all rows on this page"
          checked={shown().length > 0 && countShown() === shown().length}
          ref={(box) =>
            createEffect(() => (box.indeterminate = countShown() > 0 && countShown() < shown().length))
          }
          onChange={(event) => choose(shown(), event.currentTarget.checked)}
        />
      ),
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Select ${nameOf(row())}`}
          checked={chosen().has(idOf(row()))}
          onChange={(event) => {
            choose([row()], event.currentTarget.checked)
            event.currentTarget.checked = chosen().has(idOf(row()))
          }}
        />
      ),
    },
  }
}
