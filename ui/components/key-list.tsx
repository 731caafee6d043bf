import { For, type JSX } from 'solid-js'
import { KEYS } from './keys.ts'

export function KeyList(): JSX.Element {
  return (
    <dl>
      <For each={KEYS}>
        {([keys, what]) => (
          <>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        )}
      </For>
    </dl>
  )
}
