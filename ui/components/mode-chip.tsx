/**
 * Shown at the top of every page: live cluster, trial, simulated fleet or replay, so that they cannot be
 * confused.
 */
import { Show, type JSX } from 'solid-js'
import { useWorld } from '../api/world.ts'
import { useStoreKind } from '../state/store-kind.ts'
import styles from './shell.module.css'

type Mode = 'live' | 'trial' | 'simulated' | 'session' | 'replay'

const CHIPS: Readonly<Record<Mode, { readonly words: string; readonly meaning: string }>> = {
  live: { words: 'LIVE', meaning: 'Live cluster: simulated GPU servers cannot join.' },
  trial: {
    words: 'TRIAL',
    meaning: 'Trial: simulated GPU servers join over the broker; servers with NVIDIA GPUs cannot join.',
  },
  simulated: { words: 'SIM', meaning: 'Simulated fleet inside the controller: no task runs on a GPU.' },
  session: { words: 'SIM', meaning: 'Simulator session: a separate simulated cluster.' },
  replay: { words: 'REPLAY', meaning: 'Replay of a finished session.' },
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
