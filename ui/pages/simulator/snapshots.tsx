/** Snapshots of a session to return to, and its current state as a scenario that can be run and swept. */
import { createSignal, Index, Show, type JSX } from 'solid-js'
import type { SessionBody } from '../../../controller/api/simulations/session-schema.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useSessionControl } from './session-control.ts'
import { clockWords } from '../../format/figures.ts'
import styles from './time-controls.module.css'
import { errorText } from '../../api/error-text.ts'

export function Snapshots(props: {
  readonly view: SessionBody
  readonly whyNot: string | null
  readonly fork: JSX.Element
}): JSX.Element {
  const control = useSessionControl()
  const { api } = useCluster()
  const [problem, setProblem] = createSignal<string | null>(null)
  const download = async (): Promise<void> => {
    setProblem(null)
    try {
      const snapshot = await api.get<unknown>('/snapshot')
      const text = typeof snapshot === 'string' ? snapshot : `${JSON.stringify(snapshot, null, 2)}\n`
      save(text, `snapshot-${Math.floor(props.view.virtual_seconds)}s.scenario.json`)
    } catch (error) {
      setProblem(errorText(error))
    }
  }
  return (
    <>
      <div class="row">
        <ActionButton whyNot={props.whyNot} onClick={() => void control.command('/snapshot', {})}>
          Snapshot
        </ActionButton>
        <ActionButton whyNot={null} onClick={() => void download()}>
          Download as scenario
        </ActionButton>
        {props.fork}
      </div>
      <Show when={props.view.snapshots.length > 0}>
        <ul class={styles['snapshots']} aria-label="Snapshots">
          <Index each={props.view.snapshots}>
            {(snapshot) => (
              <li class="row">
                <span class="text">
                  {snapshot().name} {clockWords(snapshot().virtual_seconds)}{' '}
                  <code>{snapshot().state_hash.slice(0, 12)}</code>
                </span>
                <ActionButton
                  whyNot={props.whyNot}
                  onClick={() => void control.command('/seek', { snapshot: snapshot().id })}
                >
                  Restore
                </ActionButton>
              </li>
            )}
          </Index>
        </ul>
      </Show>
      <Problem text={problem()} />
    </>
  )
}

function save(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1_000)
}
