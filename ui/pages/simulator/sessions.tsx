/** Sessions, open and ended. */
import { A } from '@solidjs/router'
import { useQueryClient } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { SimulationBody, SimulationPageSchema } from '../../../controller/api/simulations/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { QueryState, type QueryPart } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'

const MAX_SESSIONS = 50

type SimulationPage = Static<typeof SimulationPageSchema>

function sessionsOf({ items }: SimulationPage): readonly SimulationBody[] {
  return items.filter(({ kind }) => kind === 'session').slice(0, MAX_SESSIONS)
}

export function Sessions(props: { readonly query: QueryPart<SimulationPage> }): JSX.Element {
  return (
    <section class="card" aria-label="Sessions">
      <h2>Sessions</h2>
      <QueryState
        query={props.query}
        isEmpty={(page) => sessionsOf(page).length === 0}
        whenEmpty={<p class="quiet">No sessions yet: start an exercise, or open a scenario below.</p>}
      >
        {(page) => (
          <Table name="Sessions" columns={COLUMNS} rows={sessionsOf(page())} idOf={({ id }) => id} />
        )}
      </QueryState>
    </section>
  )
}

const COLUMNS: readonly Column<SimulationBody>[] = [
  { name: 'Session', class: 'text', cell: (row) => <Name session={row()} /> },
  { name: 'State', class: 'text', cell: (row) => <State session={row()} /> },
  { name: 'By', class: 'text', cell: (row) => row().created_by ?? UNKNOWN },
  { name: 'Created', cell: (row) => clockTime(row().created_at) },
  { name: 'Actions', nameAs: 'hidden', class: 'row', cell: (row) => <Remove session={row()} /> },
]

interface Props {
  readonly session: SimulationBody
}

function isOpen({ state }: SimulationBody): boolean {
  return state === 'running' || state === 'queued'
}

function nameOf({ exercise, scenario }: SimulationBody): string {
  return exercise ?? scenario
}

function Name(props: Props): JSX.Element {
  const isExercise = (): boolean => props.session.exercise !== null
  const hasPage = (): boolean => isOpen(props.session) || (isExercise() && props.session.state === 'done')
  const path = (): string =>
    `/simulator/${pathSegment(props.session.id)}${isExercise() && isOpen(props.session) ? '/exercise' : ''}`
  return (
    <>
      <Show when={hasPage()} fallback={nameOf(props.session)}>
        <A href={path()}>{nameOf(props.session)}</A>
      </Show>{' '}
      <Show when={isExercise()}>
        <span class="quiet">exercise</span>
      </Show>
    </>
  )
}

function State(props: Props): JSX.Element {
  return (
    <>
      {isOpen(props.session) ? 'open' : props.session.state === 'done' ? 'ended' : props.session.state}{' '}
      <Show when={!isOpen(props.session) && props.session.reason}>
        <span class="quiet">{props.session.reason}</span>
      </Show>
    </>
  )
}

function Remove(props: Props): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const whyNot = (): string | null =>
    session.whyNot(props.session.created_by === session.body()?.caller?.name ? 'submitter' : 'operator')
  const action = (): string => (isOpen(props.session) ? 'End' : 'Delete')
  const remove = async (): Promise<void> => {
    await api.send('DELETE', `/simulations/${pathSegment(props.session.id)}`)
    await queries.invalidateQueries({ queryKey: ['simulations'] })
  }
  return (
    <ConfirmedAction
      label={action()}
      title={`${action()} ${nameOf(props.session)}?`}
      confirm={action()}
      isDanger
      whyNot={whyNot()}
      run={remove}
    >
      {isOpen(props.session)
        ? 'The simulated cluster and its snapshots are deleted. The live cluster is not affected.'
        : 'The session and its results are removed from the list.'}
    </ConfirmedAction>
  )
}
