/** Which controller leads, and whether a standby answers. Shown only where there is one, or was. */
import { Show, type JSX } from 'solid-js'
import { Chip } from '../design/chip.tsx'
import { controllersWords } from '../format/controllers.ts'
import { useCluster } from '../state/cluster.tsx'
import styles from './shell.module.css'

export function ControllersChip(): JSX.Element {
  const { feed } = useCluster()
  return (
    <Show when={feed.summary()?.controllers}>
      {(controllers) => (
        <span class={styles['controllers']} id="controllers" title={controllersWords(controllers()).meaning}>
          <Chip tone={controllers().standbys === 0 ? 'failed' : 'running'}>
            {controllersWords(controllers()).text}
          </Chip>
        </span>
      )}
    </Show>
  )
}
