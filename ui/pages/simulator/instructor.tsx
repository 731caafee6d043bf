/**
 * The faults of this session. Admins, as instructors, inject visible or hidden faults; other users see the
 * visible ones.
 */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { FaultListSchema } from '../../../controller/api/simulations/session-schema.ts'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useSessionControl } from './session-control.ts'
import { FaultForm } from './fault-form.tsx'
import { clockWords } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'

type FaultList = Static<typeof FaultListSchema>

const COLUMNS: readonly Column<FaultList['items'][number]>[] = [
  { name: 'Start', cell: (row) => clockWords(row().virtual_seconds) },
  { name: 'Visibility', cell: (row) => (row().is_hidden ? 'hidden' : 'visible') },
  {
    name: 'Origin',
    class: 'text',
    cell: (row) => (row().origin === 'scenario' ? 'scenario' : (row().by ?? 'session owner')),
  },
  { name: 'Fault', class: 'text', cell: (row) => <code>{JSON.stringify(row().fault)}</code> },
]

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
          {(list) => <Table name="Faults" columns={COLUMNS} rows={list().items} />}
        </QueryState>
      </section>
    </div>
  )
}
