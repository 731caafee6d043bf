/** Sessions, open and ended. */
import { A } from '@solidjs/router'
import { useQueryClient } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { SimulationBody, SimulationPageSchema } from '../../../controller/api/schema/simulation.ts'
import { pathSegment } from '../../api/client.ts'
import { ConfirmedAction } from '../../components/confirm-dialog.tsx'
import { QueryState, type QueryPart } from '../../components/query-state.tsx'
import { clockTime } from '../../format/figures.ts'
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
        {(page) => {
          const byId = (id: string): SimulationBody | undefined => page().items.find((each) => each.id === id)
          return (
            <div class="scroll" tabindex="0" role="group" aria-label="Sessions">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Session</th>
                    <th scope="col">State</th>
                    <th scope="col">By</th>
                    <th scope="col">Created</th>
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  <For each={sessionsOf(page()).map(({ id }) => id)}>
                    {(id) => <Show when={byId(id)}>{(session) => <Row session={session()} />}</Show>}
                  </For>
                </tbody>
              </table>
            </div>
          )
        }}
      </QueryState>
    </section>
  )
}

function Row(props: { readonly session: SimulationBody }): JSX.Element {
  const { api, session: who } = useCluster()
  const queries = useQueryClient()
  const isOpen = (): boolean => props.session.state === 'running' || props.session.state === 'queued'
  const hasPage = (): boolean =>
    isOpen() || (props.session.exercise !== null && props.session.state === 'done')
  const name = (): string => props.session.exercise ?? props.session.scenario
  const whyNot = (): string | null =>
    props.session.created_by === who.body()?.caller?.name ? who.whyNot('submitter') : who.whyNot('operator')
  const remove = async (): Promise<void> => {
    await api.send('DELETE', `/simulations/${pathSegment(props.session.id)}`)
    await queries.invalidateQueries({ queryKey: ['simulations'] })
  }
  return (
    <tr>
      <td class="text">
        <Show when={hasPage()} fallback={name()}>
          <A
            href={`/simulator/${pathSegment(props.session.id)}${props.session.exercise !== null && isOpen() ? '/exercise' : ''}`}
          >
            {name()}
          </A>
        </Show>{' '}
        <Show when={props.session.exercise}>
          <span class="quiet">exercise</span>
        </Show>
      </td>
      <td class="text">
        {isOpen() ? 'open' : props.session.state === 'done' ? 'over' : props.session.state}{' '}
        <Show when={!isOpen() && props.session.reason}>
          <span class="quiet">{props.session.reason}</span>
        </Show>
      </td>
      <td class="text">{props.session.created_by ?? '—'}</td>
      <td>{clockTime(props.session.created_at)}</td>
      <td class="row">
        <ConfirmedAction
          label={isOpen() ? 'End' : 'Delete'}
          title={isOpen() ? `End ${name()}?` : `Delete ${name()}?`}
          confirm={isOpen() ? 'End' : 'Delete'}
          isDanger
          whyNot={whyNot()}
          run={remove}
        >
          {isOpen()
            ? 'Its simulated cluster is deleted with its snapshots. The live cluster is not affected.'
            : 'It is removed from the list, with its results.'}
        </ConfirmedAction>
      </td>
    </tr>
  )
}
