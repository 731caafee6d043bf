/**
 * The states of what is asked for: loading, there, empty, and failed, where what was there stays with its
 * age.
 */
import { Show, type JSX } from 'solid-js'
import { seconds } from '../format/figures.ts'
import { now } from '../state/now.ts'

/** The part of a query that is looked at. */
export interface Asked<T> {
  readonly data: T | undefined
  readonly error: Error | null
  readonly dataUpdatedAt: number
  refetch(): unknown
}

export interface QueryStateProps<T> {
  readonly query: Asked<T>
  /** Says that there is nothing; `whenEmpty` is shown then. */
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
            <Show when={props.query.data !== undefined}>What is shown is {age()} old. </Show>
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
