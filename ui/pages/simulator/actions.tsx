/** What was done through the interface, and when. */
import { For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { ExerciseUnderWaySchema } from '../../../controller/api/schema/exercise.ts'
import { clockWords } from './time.ts'

export type Action = Static<typeof ExerciseUnderWaySchema>['actions'][number]

export function Actions(props: { readonly actions: readonly Action[] }): JSX.Element {
  return (
    <Show when={props.actions.length > 0} fallback={<p class="quiet">Nothing was changed.</p>}>
      <ol>
        <For each={props.actions}>
          {(action) => (
            <li class="text">
              {clockWords(action.virtual_seconds)} <code>{`${action.method} ${action.path}`}</code>
              <Show when={action.body !== null && action.body !== undefined}>
                {' '}
                <code>{JSON.stringify(action.body)}</code>
              </Show>
            </li>
          )}
        </For>
      </ol>
    </Show>
  )
}
