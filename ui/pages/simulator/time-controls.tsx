/** The time of a session, above its pages: current time, speed, and jumps back and forth. */
import { useNavigate } from '@solidjs/router'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { SessionBody } from '../../../controller/api/simulations/session-schema.ts'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { clockWords, plural, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { useSessionControl } from './session-control.ts'
import { Snapshots } from './snapshots.tsx'
import { readClock, scrubEnd, SPEEDS, speedWords, virtualInstant } from './time.ts'
import styles from './time-controls.module.css'
import { errorText } from '../../api/error-text.ts'

export function TimeControls(): JSX.Element {
  const control = useSessionControl()
  const { session } = useCluster()
  const whyNot = (): string | null =>
    session.whyNot('submitter') ?? (control.isBusy() ? 'In progress.' : null)
  return (
    <section class={`card ${styles['time']}`} aria-label="Session time">
      <Show when={control.view()} fallback={<p class="quiet">Loading…</p>}>
        {(view) => (
          <>
            <Where view={view()} />
            <div class="row">
              <Show
                when={view().is_paused}
                fallback={
                  <ActionButton
                    class="primary"
                    whyNot={whyNot()}
                    onClick={() => void control.command('/pause')}
                  >
                    Pause
                  </ActionButton>
                }
              >
                <ActionButton
                  class="primary"
                  whyNot={whyNot()}
                  onClick={() => void control.command('/speed', { speed: view().speed })}
                >
                  Resume
                </ActionButton>
              </Show>
              <ActionButton whyNot={whyNot()} onClick={() => void control.command('/step', { count: 1 })}>
                Step
              </ActionButton>
              <Speeds view={view()} whyNot={whyNot()} />
            </div>
            <Scrub view={view()} whyNot={whyNot()} />
            <Snapshots view={view()} whyNot={whyNot()} fork={<Fork whyNot={whyNot()} />} />
          </>
        )}
      </Show>
      <Problem text={control.problem()} />
    </section>
  )
}

function Where(props: { readonly view: SessionBody }): JSX.Element {
  const control = useSessionControl()
  return (
    <div class={`row ${styles['where']}`}>
      <strong class={styles['clock']} data-testid="virtual-time" title="Virtual time since the start">
        {clockWords(props.view.virtual_seconds)}
      </strong>
      <span>{virtualInstant(props.view.now)}</span>
      <span role="status" data-testid="pace">
        {props.view.is_seeking
          ? 'seeking…'
          : props.view.is_paused
            ? 'paused'
            : `running at ${speedWords(props.view.speed)}`}
      </span>
      <span class="quiet">
        <span data-testid="events">{whole(props.view.events)}</span> events ·{' '}
        <code
          title={
            'State hash: equal hashes mean that the same point was reached in the same way. ' +
            `${props.view.state_hash}`
          }
          data-testid="state-hash"
          data-hash={props.view.state_hash}
        >
          {props.view.state_hash.slice(0, 12)}
        </code>
      </span>
      <span class={`text quiet ${styles['name']}`}>
        {control.record()?.exercise ?? control.record()?.scenario}
      </span>
      <Show when={props.view.inputs_ahead > 0}>
        <span class="warn">
          {plural(props.view.inputs_ahead, 'later action', 'later actions')} will be repeated when the session
          reaches {props.view.inputs_ahead === 1 ? 'its' : 'their'} time. A new action before that time
          discards {props.view.inputs_ahead === 1 ? 'it' : 'them'}.
        </span>
      </Show>
    </div>
  )
}

function Speeds(props: { readonly view: SessionBody; readonly whyNot: string | null }): JSX.Element {
  const control = useSessionControl()
  return (
    <div class="row" role="group" aria-label="Speed">
      <For each={SPEEDS}>
        {(speed) => (
          <button
            type="button"
            aria-pressed={!props.view.is_paused && props.view.speed === speed}
            aria-disabled={props.whyNot === null ? undefined : 'true'}
            title={
              props.whyNot ??
              (speed === null ? 'As fast as possible' : `${speed} s of virtual time per second`)
            }
            onClick={() => props.whyNot === null && void control.command('/speed', { speed })}
          >
            {speedWords(speed)}
          </button>
        )}
      </For>
    </div>
  )
}

function Scrub(props: { readonly view: SessionBody; readonly whyNot: string | null }): JSX.Element {
  const control = useSessionControl()
  const [held, setHeld] = createSignal<number | null>(null)
  const [typed, setTyped] = createSignal('')
  const [problem, setProblem] = createSignal<string | null>(null)
  const seek = (seconds: number): void => {
    if (props.whyNot === null)
      void control.command('/seek', { virtual_seconds: seconds }).finally(() => setHeld(null))
    else setHeld(null)
  }
  const go = (event: Event): void => {
    event.preventDefault()
    const seconds = readClock(typed())
    setProblem(
      seconds === null ? 'Enter the time since the start, for example 1:30:00, 90:00 or 5400.' : null,
    )
    if (seconds !== null) seek(seconds)
  }
  return (
    <form class={`row ${styles['scrub']}`} onSubmit={(event) => go(event)}>
      <input
        type="range"
        class={styles['range']}
        aria-label="Jump to a time"
        aria-valuetext={clockWords(held() ?? props.view.virtual_seconds)}
        min="0"
        max={scrubEnd(props.view)}
        step="1"
        disabled={props.whyNot !== null && !control.isBusy()}
        value={held() ?? props.view.virtual_seconds}
        onInput={(event) => setHeld(Number(event.currentTarget.value))}
        onChange={(event) => seek(Number(event.currentTarget.value))}
      />
      <span class="quiet">
        {held() === null ? '' : `${clockWords(held())} of `}
        {clockWords(scrubEnd(props.view))}
      </span>
      <input
        aria-label="Time since the start"
        placeholder="1:30:00"
        size="8"
        value={typed()}
        aria-invalid={problem() !== null}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <button
        type="submit"
        aria-disabled={props.whyNot === null ? undefined : 'true'}
        title={props.whyNot ?? undefined}
      >
        Jump
      </button>
      <Show when={problem()}>{(words) => <span class="bad">{words()}</span>}</Show>
    </form>
  )
}

function Fork(props: { readonly whyNot: string | null }): JSX.Element {
  const control = useSessionControl()
  const navigate = useNavigate()
  const [problem, setProblem] = createSignal<string | null>(null)
  const fork = async (): Promise<void> => {
    setProblem(null)
    try {
      const { id } = await control.send<SimulationBody>('/fork', {})
      navigate(`/simulator/${pathSegment(id)}`)
    } catch (error) {
      setProblem(errorText(error))
    }
  }
  return (
    <>
      <ActionButton whyNot={props.whyNot} onClick={() => void fork()}>
        Fork session
      </ActionButton>
      <Show when={problem()}>{(words) => <span class="bad text">{words()}</span>}</Show>
    </>
  )
}
