/**
 * The faults of this session. Admins, as instructors, inject visible or hidden faults; other users see the
 * visible ones.
 */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { FaultListSchema } from '../../../controller/api/schema/session.ts'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useSessionControl } from './session-control.ts'
import { FaultForm } from './fault-form.tsx'
import { clockWords } from '../../format/figures.ts'

type FaultList = Static<typeof FaultListSchema>

export default function Instructor(): JSX.Element {
  const control = useSessionControl()
  const { session } = useCluster()
  const queries = useQueryClient()
  const faults = useQuery(() => ({
    queryKey: ['faults', control.view()?.inputs],
    queryFn: ({ signal }: { signal: AbortSignal }) => control.api.get<FaultList>('/faults', {}, signal),
  }))
  return (
    <div class="stack">
      <h1>Faults</h1>
      <Show
        when={session.whyNot('admin') === null}
        fallback={<p class="quiet">Injecting faults requires role admin.</p>}
      >
        <FaultForm onDone={() => void queries.invalidateQueries()} />
      </Show>
      <section class="card" aria-label="Injected faults">
        <h2>Injected faults</h2>
        <QueryState
          query={faults}
          isEmpty={({ items }) => items.length === 0}
          whenEmpty={<p class="quiet">No visible faults.</p>}
        >
          {(list) => (
            <div class="scroll" tabindex="0" role="group" aria-label="Faults">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Start</th>
                    <th scope="col">Visibility</th>
                    <th scope="col">Origin</th>
                    <th scope="col">Fault</th>
                  </tr>
                </thead>
                <tbody>
                  <For each={list().items}>
                    {(fault) => (
                      <tr>
                        <td>{clockWords(fault.virtual_seconds)}</td>
                        <td>{fault.is_hidden ? 'hidden' : 'open'}</td>
                        <td class="text">
                          {fault.origin === 'scenario' ? 'scenario' : (fault.by ?? 'session owner')}
                        </td>
                        <td class="text">
                          <code>{JSON.stringify(fault.fault)}</code>
                        </td>
                      </tr>
                    )}
                  </For>
                </tbody>
              </table>
            </div>
          )}
        </QueryState>
      </section>
    </div>
  )
}
