/**
 * The states of a query: loading, data, empty, and failed. After a failure the previous data stays visible
 * with its age.
 */
import { Show, type JSX } from 'solid-js'
import { seconds } from '../format/figures.ts'
import { now } from '../state/cluster.tsx'

/** The part of a query that is used here. */
export interface QueryPart<T> {
  readonly data: T | undefined
  readonly error: Error | null
  readonly dataUpdatedAt: number
  refetch(): unknown
}

export interface QueryStateProps<T> {
  readonly query: QueryPart<T>
  /** Returns true if there are no items; `whenEmpty` is shown then. */
  readonly isEmpty?: (data: T) => boolean
  readonly whenEmpty?: JSX.Element
  readonly children: (data: () => T) => JSX.Element
}

export function QueryState<T>(props: QueryStateProps<T>): JSX.Element {
  const age = (): string => seconds((now() - props.query.dataUpdatedAt) / 1000)
  return (
    <>
      <Show when={props.query.error}>
        {(error) => (
          <p class="bad" role="alert">
            {error().message}{' '}
            <Show when={props.query.data !== undefined}>The data shown is {age()} old. </Show>
            <button onClick={() => void props.query.refetch()}>Try again</button>
          </p>
        )}
      </Show>
      <Show
        when={props.query.data !== undefined}
        fallback={
          <Show when={props.query.error === null}>
            <p class="quiet" aria-busy="true">
              Loading…
            </p>
          </Show>
        }
      >
        <Show when={props.isEmpty?.(props.query.data as T) !== true} fallback={props.whenEmpty}>
          {props.children(() => props.query.data as T)}
        </Show>
      </Show>
    </>
  )
}
