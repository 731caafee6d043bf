/** On top of every page: whether this is a live cluster, a trial, a simulated fleet or a replay, so that none is taken for another. */
import { Show, type JSX } from 'solid-js'
import { useWorld } from '../api/world.ts'
import { useStoreKind } from '../state/store-kind.ts'
import styles from './shell.module.css'

type Mode = 'live' | 'trial' | 'simulated' | 'session' | 'replay'

const CHIPS: Readonly<Record<Mode, { readonly words: string; readonly meaning: string }>> = {
  live: { words: 'LIVE', meaning: 'Live cluster: no simulated GPU server can join.' },
  trial: {
    words: 'TRIAL',
    meaning: 'Trial: simulated GPU servers join over the broker, and no server with NVIDIA GPUs can.',
  },
  simulated: { words: 'SIM', meaning: 'Simulated fleet inside the controller: no task runs on a GPU.' },
  session: { words: 'SIM', meaning: 'Session of the simulator: nothing here reaches the live cluster.' },
  replay: { words: 'REPLAY', meaning: 'Replay of a session that is over.' },
}

export function ModeChip(props: { readonly isReplay: boolean }): JSX.Element {
  const { mode } = useWorld()
  const kind = useStoreKind()
  const chip = (): Mode | null => (props.isReplay ? 'replay' : mode === 'sim' ? 'session' : kind())
  return (
    <Show when={chip()}>
      {(known) => (
        <>
          <span class={styles['mode']} data-mode={known()} id="mode" title={CHIPS[known()].meaning}>
            {CHIPS[known()].words}
          </span>
          <span class="visually-hidden">{CHIPS[known()].meaning}</span>
        </>
      )}
    </Show>
  )
}
