/** Progress, time left, and the button to cancel. */
import { useNavigate } from '@solidjs/router'
import { createEffect, createSignal, Show, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { Problem } from '../../design/problem.tsx'
import { percent, seconds } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { secondsLeft, type Observation } from './time-left.ts'
import styles from './planner.module.css'
import { errorText } from '../../api/error-text.ts'

export interface ProgressProps {
  readonly simulation: SimulationBody
  /** Called after a cancellation. */
  readonly onChange: () => void
}

export function Progress(props: ProgressProps): JSX.Element {
  const { api, session } = useCluster()
  const path = usePath()
  const navigate = useNavigate()
  const [isCancelling, setCancelling] = createSignal(false)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [left, setLeft] = createSignal<number | null>(null)
  let first: Observation | null = null
  createEffect(() => {
    const { state, progress } = props.simulation
    if (state !== 'running') return
    const seen = { at: performance.now(), progress }
    first ??= seen
    setLeft(secondsLeft(first, seen))
  })
  const isUnderWay = (): boolean =>
    props.simulation.state === 'queued' || props.simulation.state === 'running'
  const remove = (): Promise<unknown> =>
    api.send('DELETE', `/simulations/${pathSegment(props.simulation.id)}`)
  const cancel = async (): Promise<void> => {
    setCancelling(true)
    setProblem(null)
    try {
      await remove()
    } catch (error) {
      setProblem(errorText(error))
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
          <ConfirmedAction
            label="Delete"
            title={`Delete the results of ${props.simulation.scenario}?`}
            confirm="Delete"
            isDanger
            whyNot={session.whyNot('submitter')}
            run={() => remove().then(() => navigate(path('/planner')))}
          >
            This deletes the runs and the report. The same scenario with the same seeds gives the same results
            again.
          </ConfirmedAction>
        }
      >
        <progress
          class={styles['progress']}
          max="1"
          value={props.simulation.progress}
          aria-label="Progress"
        />
        <span role="status" aria-live="off">
          {props.simulation.state === 'queued'
            ? 'Waiting for other simulations'
            : `${percent(props.simulation.progress * 100, 0)}, ` +
              `${left() === null ? 'time left unknown' : `about ${seconds(left())} left`}`}
        </span>
        <ActionButton
          whyNot={session.whyNot('submitter') ?? (isCancelling() ? 'Cancelling.' : null)}
          onClick={() => void cancel()}
        >
          Cancel
        </ActionButton>
      </Show>
      <Problem text={problem()} />
    </section>
  )
}
