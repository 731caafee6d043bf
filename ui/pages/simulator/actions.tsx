/** Actions that were taken through the API, with their times. */
import { For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { ExerciseUnderWaySchema } from '../../../controller/api/simulations/exercise-schema.ts'
import { clockWords } from '../../format/figures.ts'

export type Action = Static<typeof ExerciseUnderWaySchema>['actions'][number]

export interface ActionsProps {
  readonly actions: readonly Action[]
  /** Virtual seconds: later actions are not done yet; omitted: all are done. */
  readonly at?: number
}

export function Actions(props: ActionsProps): JSX.Element {
  const done = (): number =>
    props.actions.filter(({ virtual_seconds }) => virtual_seconds <= (props.at ?? Infinity)).length
  return (
    <Show when={props.actions.length > 0} fallback={<p class="quiet">No actions.</p>}>
      <ol>
        <For each={props.actions}>
          {(action, index) => (
            <li
              class="text"
              classList={{ quiet: index() >= done() }}
              aria-current={props.at !== undefined && index() === done() - 1 ? 'step' : undefined}
            >
              {clockWords(action.virtual_seconds)} <code>{`${action.method} ${action.path}`}</code>
              <Show when={action.body !== null && action.body !== undefined}>
                {' '}
                <code>{JSON.stringify(action.body)}</code>
              </Show>
              <Show when={index() >= done()}> (not yet)</Show>
            </li>
          )}
        </For>
      </ol>
    </Show>
  )
}
