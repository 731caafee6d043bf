/** The events of a task, newest first. */
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { EventBody, EventPage } from '../../../controller/api/observe/event-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN } from '../../format/figures.ts'
import { eventWords, factWords } from '../../format/events.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { DecisionLink } from './swap-history.tsx'

const SHOWN = 100

export function Timeline(props: { readonly taskId: string }): JSX.Element {
  const { api } = useCluster()
  const events = useQuery(() => ({
    queryKey: ['events', 'of-task', props.taskId],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<EventPage>(
        `/tasks/${pathSegment(props.taskId)}/events`,
        { order: 'newest', limit: SHOWN },
        signal,
      ),
    staleTime: 2_000,
  }))
  const columns: readonly Column<EventBody>[] = [
    { name: 'Time', class: 'nowrap', cell: (row) => clockTime(row().at) },
    { name: 'Event', cell: (row) => eventWords(row().kind) },
    { name: 'Details', class: 'text', cell: (row) => factWords(row().data, events.data?.names) },
    {
      name: 'Actor',
      class: 'text',
      cell: (row) =>
        row().by ?? <span title="No user requested this, or authentication is off.">{UNKNOWN}</span>,
    },
    {
      name: 'Cause',
      cell: (row) => (
        <Show
          when={row().decision}
          fallback={row().caused_by === null ? 'external' : `event ${row().caused_by}`}
        >
          {(number) => <DecisionLink number={number()} />}
        </Show>
      ),
    },
  ]
  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <QueryState
        query={events}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">The events of this task are no longer retained.</p>}
      >
        {(page) => (
          <>
            <Table name="Task events" columns={columns} rows={page().items} />
            <Show when={page().next_before !== null}>
              <p class="quiet">Only the latest {page().items.length} events are shown.</p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}
