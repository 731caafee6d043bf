/** The events of a task, newest first. */
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { EventBody, EventPage } from '../../../controller/api/schema/event.ts'
import { pathSegment } from '../../api/client.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime, UNKNOWN } from '../../format/figures.ts'
import { eventWords, factWords } from '../../format/events.ts'
import { useCluster } from '../../state/cluster.tsx'
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
  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <QueryState
        query={events}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">Its events are no longer retained.</p>}
      >
        {(page) => (
          <>
            <div class="scroll" tabindex="0" role="group" aria-label="Events of the task">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Time</th>
                    <th scope="col">Event</th>
                    <th scope="col">Details</th>
                    <th scope="col">Actor</th>
                    <th scope="col">Cause</th>
                  </tr>
                </thead>
                <tbody>
                  <For each={page().items}>{(event) => <EventRow event={event} names={page().names} />}</For>
                </tbody>
              </table>
            </div>
            <Show when={page().next_before !== null}>
              <p class="quiet">The latest {page().items.length} are shown.</p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}

function EventRow(props: { readonly event: EventBody; readonly names: EventPage['names'] }): JSX.Element {
  return (
    <tr>
      <td class="nowrap">{clockTime(props.event.at)}</td>
      <td>{eventWords(props.event.kind)}</td>
      <td class="text">{factWords(props.event.data, props.names)}</td>
      <td
        class="text"
        title={props.event.by === null ? 'No user requested it, or users have no names.' : undefined}
      >
        {props.event.by ?? UNKNOWN}
      </td>
      <td>
        <Show
          when={props.event.decision}
          fallback={props.event.caused_by === null ? 'external' : `event ${props.event.caused_by}`}
        >
          {(number) => <DecisionLink number={number()} />}
        </Show>
      </td>
    </tr>
  )
}
