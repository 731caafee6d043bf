/**
 * Pages of a list with forward cursors only: going back uses the visited pages, and the first page is always
 * available.
 */
import { createSignal, Show, type JSX } from 'solid-js'
import { whole } from '../format/figures.ts'
import styles from './pager.module.css'

export interface PagerProps {
  /** Cursor of this page, from the URL; null: the first page. */
  readonly cursor: string | null
  /** null: this is the last page. */
  readonly nextCursor: string | null
  readonly shown: number
  /** Number of items in all; null: unknown. */
  readonly total: number | null
  readonly onGo: (cursor: string | null) => void
}

export function Pager(props: PagerProps): JSX.Element {
  const [behind, setBehind] = createSignal<readonly (string | null)[]>([])
  const goNext = (): void => {
    setBehind([...behind(), props.cursor])
    props.onGo(props.nextCursor)
  }
  const goBack = (): void => {
    const last = behind().at(-1) ?? null
    setBehind(behind().slice(0, -1))
    props.onGo(last)
  }
  const goFirst = (): void => {
    setBehind([])
    props.onGo(null)
  }
  /** The list has one page only. */
  const isOnly = (): boolean => props.cursor === null && props.nextCursor === null
  return (
    <nav class={`row ${styles['pager']}`} aria-label="List pages">
      <Show when={!isOnly()}>
        <button disabled={props.cursor === null} onClick={goFirst}>
          First
        </button>
        <button disabled={props.cursor === null || behind().length === 0} onClick={goBack}>
          Back
        </button>
        <button disabled={props.nextCursor === null} onClick={goNext}>
          Next
        </button>
      </Show>
      <span class="quiet">
        {whole(props.shown)} shown
        <Show when={props.total !== null}> of {whole(props.total)}</Show>
      </span>
    </nav>
  )
}
