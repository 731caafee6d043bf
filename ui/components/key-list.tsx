import { For, type JSX } from 'solid-js'
import styles from './key-list.module.css'
import { KEYS } from './keys.ts'

export function KeyList(): JSX.Element {
  return (
    <dl class={styles['keys']}>
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
