/** Tasks whose end is in the lost part of the history. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type Accessor, type JSX } from 'solid-js'
import type { TaskBody, TaskPage } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { DataTable } from '../../design/data-table.tsx'
import type { Column } from '../../design/table.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'

/** Maximum page size of the API. */
const MAX_TASKS = 200

export function UnknownResults(props: { readonly toEnd: readonly string[] }): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const lost = useQuery(() => ({
    queryKey: ['tasks', 'result-unknown'],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const page = await api.get<TaskPage>('/tasks', { state: 'lost', limit: MAX_TASKS }, signal)
      return {
        tasks: page.items.filter(({ end_code: code }) => code === 'result_unknown'),
        hasMore: page.next_cursor !== null,
      }
    },
  }))
  return (
    <section class="card" aria-label="Tasks with an unknown result">
      <h2>Tasks with an unknown result</h2>
      <p>
        These tasks are no longer on their nodes, and their results are lost. They are never restarted
        automatically. Check their output before you submit them again.
      </p>
      <Show when={props.toEnd.length > 0}>
        <p>
          These tasks are marked as lost when the recovery is finished:{' '}
          <For each={props.toEnd}>
            {(id, at) => (
              <>
                {at() === 0 ? '' : ', '}
                <A class="text" href={path(`/tasks/${pathSegment(id)}`)}>
                  {id}
                </A>
              </>
            )}
          </For>
          .
        </p>
      </Show>
      <QueryState query={lost}>
        {(found) => (
          <>
            <Show
              when={found().tasks.length > 0}
              fallback={<p class="quiet">No tasks have ended with an unknown result.</p>}
            >
              <DataTable
                name="Ended with an unknown result"
                columns={COLUMNS}
                rows={found().tasks}
                idOf={({ id }) => id}
              />
            </Show>
            <Show when={found().hasMore}>
              <p class="quiet">Only the {MAX_TASKS} most recently submitted lost tasks were examined.</p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}

const COLUMNS: readonly Column<TaskBody>[] = [
  { name: 'Name', cell: (row) => <Name row={row} /> },
  { name: 'Owner', cell: (row) => <span class="text">{row().owner ?? UNKNOWN}</span> },
  { name: 'Started', cell: (row) => <span class="nowrap">{clockTime(row().first_started_at)}</span> },
  { name: 'Ended', cell: (row) => <span class="nowrap">{clockTime(row().finished_at)}</span> },
  { name: 'Reason', class: 'wide', cell: (row) => <span class="text">{row().end_reason}</span> },
]

function Name(props: { readonly row: Accessor<TaskBody> }): JSX.Element {
  const path = usePath()
  return (
    <A class="name" href={path(`/tasks/${pathSegment(props.row().id)}`)}>
      {props.row().name}
    </A>
  )
}
