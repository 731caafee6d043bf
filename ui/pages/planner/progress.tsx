/** How far it is, how long it will still take, and the way to end it. */
import { useNavigate } from '@solidjs/router'
import { createEffect, createSignal, Show, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/schema/simulation.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { ConfirmedAction } from '../../components/confirm-dialog.tsx'
import { percent, seconds } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { secondsLeft, type Seen } from './time-left.ts'
import styles from './planner.module.css'

export interface ProgressProps {
  readonly simulation: SimulationBody
  /** It was cancelled. */
  readonly onChange: () => void
}

export function Progress(props: ProgressProps): JSX.Element {
  const { api, session } = useCluster()
  const path = usePath()
  const navigate = useNavigate()
  const [isCancelling, setCancelling] = createSignal(false)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [left, setLeft] = createSignal<number | null>(null)
  let first: Seen | null = null
  createEffect(() => {
    const { state, progress } = props.simulation
    if (state !== 'running') return
    const seen = { at: performance.now(), progress }
    first ??= seen
    setLeft(secondsLeft(first, seen))
  })
  const isUnderWay = (): boolean =>
    props.simulation.state === 'queued' || props.simulation.state === 'running'
  const remove = (): Promise<unknown> => api.send('DELETE', `/simulations/${part(props.simulation.id)}`)
  const cancel = async (): Promise<void> => {
    setCancelling(true)
    setProblem(null)
    try {
      await remove()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setCancelling(false)
      props.onChange()
    }
  }
  return (
    <section aria-label="Progress" class="row">
      <Show
        when={isUnderWay()}
        fallback={
          <>
            <Show when={props.simulation.reason}>{(reason) => <p class="warn text">{reason()}</p>}</Show>
            <ConfirmedAction
              label="Delete"
              title={`Delete what came of ${props.simulation.scenario}?`}
              confirm="Delete it"
              isDanger
              whyNot={session.whyNot('submitter')}
              run={() => remove().then(() => navigate(path('/planner')))}
            >
              Its runs and its report are gone then. The same scenario with the same seeds gives the same
              again.
            </ConfirmedAction>
          </>
        }
      >
        <progress class={styles['progress']} max="1" value={props.simulation.progress} aria-label="Done" />
        <span role="status" aria-live="off">
          {props.simulation.state === 'queued'
            ? 'Waits for others to end'
            : `${percent(props.simulation.progress * 100, 0)}, ${left() === null ? 'time left not known yet' : `some ${seconds(left())} left`}`}
        </span>
        <ActionButton
          whyNot={session.whyNot('submitter') ?? (isCancelling() ? 'It is being cancelled.' : null)}
          onClick={() => void cancel()}
        >
          Cancel
        </ActionButton>
      </Show>
      <Show when={problem()}>
        {(words) => (
          <p class="bad text" role="alert">
            {words()}
          </p>
        )}
      </Show>
    </section>
  )
}
