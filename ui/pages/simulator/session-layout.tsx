/**
 * The pages of a session's cluster, which are the production pages over the API of its own controller, with
 * time controls above them.
 */
import { A, useParams } from '@solidjs/router'
import { useQueryClient } from '@tanstack/solid-query'
import { createEffect, on, onCleanup, onMount, Show, type JSX } from 'solid-js'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { WorldContext } from '../../api/world.ts'
import { LiveLayout } from '../../components/live-layout.tsx'
import { Shell } from '../../components/shell.tsx'
import { ClusterProvider } from '../../state/cluster.tsx'
import { useVirtualTime } from '../../state/zone.ts'
import { Debrief } from './debrief.tsx'
import {
  createSessionControl,
  SessionControlContext,
  sessionBase,
  useSessionControl,
} from './session-control.ts'
import { TimeControls } from './time-controls.tsx'

export default function SessionLayout(props: { readonly children?: JSX.Element }): JSX.Element {
  const params = useParams<{ readonly simulation: string }>()
  return (
    <Show when={params.simulation} keyed>
      {(id) => (
        <SessionControlContext.Provider value={createSessionControl(id)}>
          <ByState>{props.children}</ByState>
        </SessionControlContext.Provider>
      )}
    </Show>
  )
}

function ByState(props: { readonly children?: JSX.Element }): JSX.Element {
  const control = useSessionControl()
  const open = (): SimulationBody | undefined => {
    const record = control.record()
    return record?.kind === 'session' && record.state === 'running' ? record : undefined
  }
  return (
    <Show when={open() !== undefined} fallback={<NotOpen />}>
      <Open record={open() as SimulationBody}>{props.children}</Open>
    </Show>
  )
}

function Open(props: { readonly record: SimulationBody; readonly children?: JSX.Element }): JSX.Element {
  const control = useSessionControl()
  // The kind and the owner of a session do not change.
  // eslint-disable-next-line solid/reactivity
  const { created_by: owner, exercise } = props.record
  const world = {
    apiBase: `${sessionBase(control.id)}/api/v1`,
    pathBase: `/simulator/${pathSegment(control.id)}`,
    mode: 'sim',
    owner,
  } as const
  const own = [
    ...(exercise === null ? [] : [{ path: '/exercise', name: 'Exercise', key: 'x' }]),
    { path: '/instructor', name: 'Faults', key: 'f' },
  ]
  useVirtualTime()
  const title = document.title
  onMount(() => (document.title = `SIM ${exercise ?? props.record.scenario} · Headroom`))
  onCleanup(() => (document.title = title))
  return (
    <WorldContext.Provider value={world}>
      <ClusterProvider>
        <ReadAgain />
        <Shell own={own} banner={<TimeControls />}>
          {props.children}
        </Shell>
      </ClusterProvider>
    </WorldContext.Provider>
  )
}

/** After a jump all displayed data is of another time. */
function ReadAgain(): JSX.Element {
  const queries = useQueryClient()
  createEffect(on(useSessionControl().jumps, () => void queries.invalidateQueries(), { defer: true }))
  return <></>
}

/** The session has ended, is not a session, or was not found. */
function NotOpen(): JSX.Element {
  const control = useSessionControl()
  const isDebriefed = (): boolean => {
    const record = control.record()
    return record?.kind === 'session' && record.exercise !== null && record.state === 'done'
  }
  return (
    <LiveLayout isReplay={isDebriefed()}>
      <div class="stack">
        <h1>{control.record()?.exercise === null || control.record() === null ? 'Session' : 'Exercise'}</h1>
        <Show when={control.record()} fallback={<Waiting problem={control.problem()} />}>
          {(record) => (
            <Show when={record().kind === 'session'} fallback={<p>This simulation is not a session.</p>}>
              <p class="text">
                The session has ended. {record().reason} <A href="/simulator">Go to the simulator</A>
              </p>
              <Show when={isDebriefed()}>
                <Debrief />
              </Show>
            </Show>
          )}
        </Show>
      </div>
    </LiveLayout>
  )
}

function Waiting(props: { readonly problem: string | null }): JSX.Element {
  return (
    <Show when={props.problem} fallback={<p class="quiet">Loading…</p>}>
      {(words) => (
        <p class="bad" role="alert">
          {words()} <A href="/simulator">Go to the simulator</A>
        </p>
      )}
    </Show>
  )
}
