/**
 * The one table of the page: columns as data, rows kept by id so that focus stays when their values change.
 */
import { createMemo, For, Match, Show, Switch, type Accessor, type JSX } from 'solid-js'
import { Icon } from './icon.tsx'
import styles from './table.module.css'

export interface Column<R> {
  readonly name: string
  readonly isNumber?: boolean
  /** How the name is shown: as code, or only to screen readers. */
  readonly nameAs?: 'code' | 'hidden'
  /** The cells name their rows. */
  readonly isRowHeading?: boolean
  /** Shown instead of the name. */
  readonly heading?: () => JSX.Element
  /** Explanation, shown as the title of the heading. */
  readonly help?: string
  /** The server can sort by this column. */
  readonly sort?: string
  /** Classes of the cells. */
  readonly class?: string
  readonly cell: (row: Accessor<R>) => JSX.Element
}

export interface TableSort {
  readonly by: string
  readonly direction: 'ascending' | 'descending'
  readonly onSort: (by: string) => void
}

export interface TableProps<R> {
  /** Accessible name of the table. */
  readonly name: string
  readonly columns: readonly Column<R>[]
  readonly rows: readonly R[]
  /** Omitted: a row is identified by its object. */
  readonly idOf?: (row: R) => unknown
  readonly id?: string
  /** The current order; omitted: the columns cannot be sorted. */
  readonly sort?: TableSort | undefined
  readonly class?: string | undefined
  /** On a surface of its own, with a heading that stays in view. */
  readonly isFramed?: boolean
  readonly caption?: JSX.Element
  /** The names of the columns are only for screen readers. */
  readonly isHeadHidden?: boolean
  /** Id of the element, by which it can be focused. */
  readonly rowIdOf?: (row: R) => string
  readonly rowClassOf?: (row: R) => string | undefined
  /** Further `tr` elements after the rows. */
  readonly children?: JSX.Element
}

/** A table in a focusable region, which scrolls sideways where the page is narrower. */
export function Table<R>(props: TableProps<R>): JSX.Element {
  const idOf = (row: R): unknown => (props.idOf === undefined ? row : props.idOf(row))
  const byId = createMemo(() => new Map(props.rows.map((row) => [idOf(row), row])))
  return (
    <div
      class={`scroll ${props.class ?? ''} ${props.isFramed === true ? styles['table'] : ''}`}
      tabindex="0"
      role="group"
      aria-label={props.name}
    >
      <table id={props.id}>
        <Show when={props.caption}>
          <caption>{props.caption}</caption>
        </Show>
        <thead classList={{ 'visually-hidden': props.isHeadHidden === true }}>
          <tr>
            <For each={props.columns}>{(column) => <Heading column={column} sort={props.sort} />}</For>
          </tr>
        </thead>
        <tbody>
          <For each={[...byId().keys()]}>{(id) => <Row {...props} row={byId().get(id)} />}</For>
          {props.children}
        </tbody>
      </table>
    </div>
  )
}

interface HeadingProps<R> {
  readonly column: Column<R>
  readonly sort: TableSort | undefined
}

function Heading<R>(props: HeadingProps<R>): JSX.Element {
  const isSorted = (): boolean => props.column.sort !== undefined && props.sort?.by === props.column.sort
  const by = (): string | undefined => (props.sort === undefined ? undefined : props.column.sort)
  return (
    <th
      scope="col"
      classList={{ number: props.column.isNumber === true }}
      title={props.column.help}
      aria-sort={isSorted() ? props.sort?.direction : undefined}
    >
      <Show when={by()} fallback={<HeadingName column={props.column} />}>
        {(sort) => (
          <button class={styles['sort']} onClick={() => props.sort?.onSort(sort())}>
            <HeadingName column={props.column} />
            <For each={isSorted() ? [props.sort?.direction] : []}>
              {(direction) => <Icon of={direction === 'ascending' ? 'arrow-up' : 'arrow-down'} />}
            </For>
          </button>
        )}
      </Show>
    </th>
  )
}

function HeadingName<R>(props: { readonly column: Column<R> }): JSX.Element {
  return (
    <Switch fallback={props.column.name}>
      <Match when={props.column.heading}>{(heading) => heading()()}</Match>
      <Match when={props.column.nameAs === 'code'}>
        <code>{props.column.name}</code>
      </Match>
      <Match when={props.column.nameAs === 'hidden'}>
        <span class="visually-hidden">{props.column.name}</span>
      </Match>
    </Switch>
  )
}

type RowProps<R> = Pick<TableProps<R>, 'columns' | 'rowIdOf' | 'rowClassOf'> & { readonly row: R | undefined }

function Row<R>(props: RowProps<R>): JSX.Element {
  // A removed row is read again before it is disposed of.
  const row = createMemo<R>((before) => props.row ?? (before as R))
  return (
    <tr
      id={props.rowIdOf?.(row())}
      tabindex={props.rowIdOf === undefined ? undefined : '-1'}
      class={props.rowClassOf?.(row())}
    >
      <For each={props.columns}>
        {(column) => (
          <Show when={column.isRowHeading} fallback={<td class={cellClass(column)}>{column.cell(row)}</td>}>
            <th scope="row" class={cellClass(column)}>
              {column.cell(row)}
            </th>
          </Show>
        )}
      </For>
    </tr>
  )
}

function cellClass(column: Column<never>): string | undefined {
  const classes = [column.isNumber === true ? 'number' : '', column.class ?? ''].join(' ').trim()
  return classes === '' ? undefined : classes
}
