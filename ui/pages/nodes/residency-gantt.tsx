/** The residency of each GPU of a node in the last hour, with the decision of each bar. */
import { useQuery } from '@tanstack/solid-query'
import { createMemo, createSignal, Show, type JSX } from 'solid-js'
import type { DecisionBody, DecisionPage } from '../../../controller/api/observe/decision-schema.ts'
import type { EventBody, EventPage } from '../../../controller/api/observe/event-schema.ts'
import type { TaskBody, TaskPage } from '../../../controller/api/tasks/schema.ts'
import type { ApiClient } from '../../api/client.ts'
import { GanttChart } from '../../charts/gantt-chart.tsx'
import { DecisionDetails } from '../../components/decision-details.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { usePlacedTasks } from './gpu-table.tsx'
import { RESIDENCY_EVENTS, residencyBars, type ResidencyBar } from './residency.ts'

const SHOWN_MS = 3_600_000
const PAGE = 200
/** Maximum number of event pages; a note says when there are more. */
const MAX_PAGES = 25
const MAX_DECISION_PAGES = 5
const AGAIN_MS = 10_000

interface Retained {
  readonly events: readonly EventBody[]
  readonly decisions: readonly DecisionBody[]
  readonly finished: readonly TaskBody[]
  readonly from: number
  readonly to: number
  readonly isCut: boolean
}

export function ResidencyGantt(props: {
  readonly nodeId: string
  readonly gpuIndexes: readonly number[]
}): JSX.Element {
  const { api, feed } = useCluster()
  const tasks = usePlacedTasks(() => props.nodeId)
  const retained = useQuery(() => ({
    // Not under `events`: a burst of events would cause a burst of these requests.
    queryKey: ['series', 'residency', props.nodeId],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      retainedOf(api, props.nodeId, Date.parse(feed.summary()?.at ?? new Date().toISOString()), signal),
    refetchInterval: AGAIN_MS,
  }))
  const bars = createMemo((): readonly ResidencyBar[] =>
    retained.data === undefined
      ? []
      : residencyBars({ ...retained.data, tasks: tasks.data?.items ?? [], gpuIndexes: props.gpuIndexes }),
  )
  const [chosen, setChosen] = createSignal<ResidencyBar | null>(null)
  return (
    <section class="card" aria-labelledby="residency">
      <h2 id="residency">Residency</h2>
      <QueryState query={retained}>
        {(data) => (
          <>
            <GanttChart
              name="Residency in the last hour"
              rows={props.gpuIndexes.map((index) => `GPU ${index}`)}
              bars={bars()}
              from={data().from}
              to={data().to}
              textOf={(bar) => bar.taskName}
              onOpen={setChosen}
            />
            <p class="quiet">
              GPU use is not recorded continuously. A resident task is shown as idle if it is idle now or was
              idle at a recorded decision. Otherwise it is shown as active.
              <Show when={data().isCut}>
                {' '}
                There are too many events: only the most recent part of the hour is shown.
              </Show>
            </p>
          </>
        )}
      </QueryState>
      <Show when={chosen()}>{(bar) => <DecisionPanel bar={bar()} onClose={() => setChosen(null)} />}</Show>
    </section>
  )
}

function DecisionPanel(props: { readonly bar: ResidencyBar; readonly onClose: () => void }): JSX.Element {
  const { api } = useCluster()
  const decision = useQuery(() => ({
    queryKey: ['decisions', 'behind', props.bar.taskId, props.bar.decision ?? 'latest'],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<DecisionBody | null> => {
      const { decision: number, taskId, to } = props.bar
      if (number !== null) return api.get<DecisionBody>(`/decisions/${number}`, {}, signal)
      const { items } = await api.get<DecisionPage>('/decisions', { task: taskId, limit: 50 }, signal)
      return items.find(({ at }) => Date.parse(at) < to) ?? null
    },
    retry: false,
    placeholderData: () => undefined,
  }))
  return (
    <div class="card stack" id="behind" role="region" aria-label="Decision">
      <div class="row">
        <h3 class="text">Reason: {props.bar.taskName}</h3>
        <button onClick={() => props.onClose()}>Close</button>
      </div>
      <QueryState
        query={decision}
        isEmpty={(body) => body === null}
        whenEmpty={<p class="quiet">The decision is no longer retained.</p>}
      >
        {(body) => <Show when={body()}>{(found) => <DecisionDetails decision={found()} />}</Show>}
      </QueryState>
    </div>
  )
}

/** Newest first, back to the start of the hour or the page limit. */
async function retainedOf(api: ApiClient, node: string, to: number, signal: AbortSignal): Promise<Retained> {
  const from = to - SHOWN_MS
  const since = new Date(from).toISOString()
  const events: EventBody[] = []
  let before: number | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const asked = { node, kind: RESIDENCY_EVENTS, since, order: 'newest', limit: PAGE, before }
    const answer: EventPage = await api.get<EventPage>('/events', asked, signal)
    events.push(...answer.items)
    before = answer.next_before
    if (before === null) break
  }
  const decisions: DecisionBody[] = []
  let below: number | null = null
  for (let page = 0; page < MAX_DECISION_PAGES; page++) {
    const answer: DecisionPage = await api.get<DecisionPage>(
      '/decisions',
      { node, limit: PAGE, before: below },
      signal,
    )
    decisions.push(...answer.items)
    below = answer.next_before
    if (below === null || Date.parse(answer.items.at(-1)?.at ?? since) < from) break
  }
  const { items: finished } = await api.get<TaskPage>(
    '/tasks',
    { node, state: 'completed', limit: PAGE },
    signal,
  )
  const isCut = before !== null
  const reached = isCut ? Date.parse(events.at(-1)?.at ?? since) : from
  return { events: events.toReversed(), decisions, finished, from: reached, to, isCut }
}
