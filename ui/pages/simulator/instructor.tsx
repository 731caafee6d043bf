/**
 * What breaks in this session. Admins, as instructors, break something, so that it is seen or hidden; others
 * read what is not hidden.
 */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { FaultListSchema } from '../../../controller/api/schema/session.ts'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useDrive } from './drive.ts'
import { FaultForm } from './fault-form.tsx'
import { clockWords } from '../../format/figures.ts'

type FaultList = Static<typeof FaultListSchema>

export default function Instructor(): JSX.Element {
  const drive = useDrive()
  const { session } = useCluster()
  const queries = useQueryClient()
  const faults = useQuery(() => ({
    queryKey: ['faults', drive.view()?.inputs],
    queryFn: ({ signal }: { signal: AbortSignal }) => drive.api.get<FaultList>('/faults', {}, signal),
  }))
  return (
    <div class="stack">
      <h1>Faults</h1>
      <Show
        when={session.whyNot('admin') === null}
        fallback={<p class="quiet">Who teaches breaks things here; that takes the role admin.</p>}
      >
        <FaultForm onDone={() => void queries.invalidateQueries()} />
      </Show>
      <section class="card" aria-label="What breaks">
        <h2>What breaks</h2>
        <QueryState
          query={faults}
          isEmpty={({ items }) => items.length === 0}
          whenEmpty={<p class="quiet">Nothing that you may know of.</p>}
        >
          {(list) => (
            <div class="scroll" tabindex="0" role="group" aria-label="Faults">
              <table>
                <thead>
                  <tr>
                    <th scope="col">From</th>
                    <th scope="col">Seen</th>
                    <th scope="col">By</th>
                    <th scope="col">What</th>
                  </tr>
                </thead>
                <tbody>
                  <For each={list().items}>
                    {(fault) => (
                      <tr>
                        <td>{clockWords(fault.virtual_seconds)}</td>
                        <td>{fault.is_hidden ? 'hidden' : 'open'}</td>
                        <td class="text">
                          {fault.origin === 'scenario' ? 'the scenario' : (fault.by ?? 'whoever drives it')}
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
