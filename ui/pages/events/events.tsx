/**
 * The event log, newest first: actor, event, cause. New events wait behind a button, or are followed; rows
 * under the pointer do not move.
 */
import { A, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createEffect, createMemo, createSignal, For, Show, type JSX } from 'solid-js'
import type { EventBody, EventPage } from '../../../controller/api/observe/event-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { NodeLink, TaskLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UseArea } from '../../design/data-table.tsx'
import { FilterForm } from '../../design/filter-form.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { eventWords, factWords, tasksOf } from '../../format/events.ts'
import { EVENT_GROUPS } from '../../format/event-groups.ts'

const PAGE = 100

/**
 * A page with its request, so that results of another request are distinguished from newer rows of the same
 * list.
 */
interface RequestedPage extends EventPage {
  readonly requested: string
}

export default function Events(): JSX.Element {
  const { api, feed } = useCluster()
  const [search, setSearch] = useSearchParams()
  const text = (name: string): string => (typeof search[name] === 'string' ? search[name] : '')
  const asked = () => ({ kind: text('kind'), task: text('task'), node: text('node'), before: text('before') })
  const [news, setNews] = createSignal(0)
  feed.onEvents((events) => setNews(news() + (events?.length ?? 0)))
  const events = useQuery(() => ({
    // Not under the subject `events`: the list is refreshed on request only.
    queryKey: ['events-page', asked()],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<RequestedPage> => {
      const of = asked()
      const page = await api.get<EventPage>('/events', { order: 'newest', limit: PAGE, ...of }, signal)
      return { ...page, requested: JSON.stringify(of) }
    },
  }))
  const showNews = (): void => {
    setNews(0)
    if (text('before') === '') void events.refetch()
    else setSearch({ before: null })
  }
  // While following, new events are shown as they arrive, except while the pointer or the focus is in the
  // table.
  const [isHeld, setHeld] = createSignal(false)
  const isFollowed = (): boolean => text('follow') !== ''
  createEffect(() => {
    if (isFollowed() && !isHeld() && news() > 0 && text('before') === '' && !events.isFetching) showNews()
  })
  // A response that arrives while the pointer or the focus is in the table is shown after they have left.
  const shownOf = (fresh: () => RequestedPage): (() => RequestedPage) =>
    createMemo<RequestedPage>((shown) => {
      const page = fresh()
      return isFollowed() && isHeld() && shown?.requested === page.requested ? shown : page
    })
  const filter = (name: string, value: string): void =>
    setSearch({ [name]: value === '' ? null : value, before: null })
  return (
    <div class="stack">
      <h1>Events</h1>
      <FilterForm
        name="Events"
        active={[text('kind'), text('task'), text('node')].filter((value) => value !== '').length}
        beside={
          <>
            <button type="button" onClick={showNews} disabled={news() === 0 && text('before') === ''}>
              {news() === 0 ? 'Up to date' : `${news()} new`}
            </button>
            <label class="check">
              <input
                type="checkbox"
                checked={isFollowed()}
                onChange={(event) =>
                  setSearch({ follow: event.currentTarget.checked ? 'yes' : null, before: null })
                }
              />{' '}
              Follow
            </label>
          </>
        }
      >
        <label>
          Event{' '}
          <select value={text('kind')} onChange={(event) => filter('kind', event.currentTarget.value)}>
            <option value="">all</option>
            <For each={EVENT_GROUPS}>{({ name, kinds }) => <option value={kinds}>{name}</option>}</For>
          </select>
        </label>
        <label>
          Task{' '}
          <input
            type="search"
            value={text('task')}
            placeholder="name or ID"
            onChange={(event) => filter('task', event.currentTarget.value.trim())}
          />
        </label>
        <label>
          Node{' '}
          <input
            value={text('node')}
            placeholder="name or ID"
            onChange={(event) => filter('node', event.currentTarget.value.trim())}
          />
        </label>
      </FilterForm>
      <QueryState
        query={events}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={
          <p class="quiet">
            {text('kind') + text('task') + text('node') === '' ? 'No events yet. ' : 'No matching events. '}
            <button onClick={() => setSearch({ kind: null, task: null, node: null, before: null })}>
              Show all events
            </button>
          </p>
        }
      >
        {(fresh) => {
          const page = shownOf(fresh)
          const columns: readonly Column<EventBody>[] = [
            { name: 'No.', isNumber: true, cell: (row) => row().seq },
            { name: 'Time', class: 'nowrap', cell: (row) => <At at={row().at} /> },
            { name: 'Event', cell: (row) => eventWords(row().kind) },
            {
              name: 'Task and node',
              class: 'text',
              cell: (row) => <Subjects event={row()} names={page().names} />,
            },
            { name: 'Actor and cause', class: 'text', cell: (row) => <ActorAndCause event={row()} /> },
            { name: 'Details', class: 'text quiet', cell: (row) => factWords(row().data, page().names) },
          ]
          return (
            <>
              <UseArea onChange={setHeld}>
                <Table
                  name="Events, newest first"
                  isFramed
                  columns={columns}
                  rows={page().items}
                  idOf={({ seq }) => seq}
                  rowIdOf={({ seq }) => `event-${seq}`}
                />
              </UseArea>
              <nav class="row" aria-label="Older and newer">
                <button disabled={text('before') === ''} onClick={() => setSearch({ before: null })}>
                  Newest
                </button>
                <button
                  disabled={page().next_before === null}
                  onClick={() => setSearch({ before: String(page().next_before) })}
                >
                  Older
                </button>
              </nav>
            </>
          )
        }}
      </QueryState>
    </div>
  )
}

interface CellProps {
  readonly event: EventBody
  readonly names: EventPage['names']
}

function At(props: { readonly at: string }): JSX.Element {
  const path = usePath()
  return (
    <A href={path(`/?at=${encodeURIComponent(props.at)}`)} title="Show the charts around this time">
      {clockTime(props.at)}
    </A>
  )
}

function Subjects(props: CellProps): JSX.Element {
  const nameOf = (id: string): string => props.names[id] ?? shortId(id)
  return (
    <>
      <For each={tasksOf(props.event)}>
        {(id) => (
          <div>
            <TaskLink id={id} name={nameOf(id)} title={`Task ${id}`} />
          </div>
        )}
      </For>
      <Show when={isForAnother(props.event) && props.event.task_id}>
        {(id) => (
          <div class="quiet">
            for <TaskLink id={id()} name={nameOf(id())} title={`Task ${id()}`} />
          </div>
        )}
      </Show>
      <Show when={props.event.node_id}>
        {(id) => (
          <div>
            on <NodeLink class="" id={id()} name={nameOf(id())} title={`Node ${id()}`} />
          </div>
        )}
      </Show>
    </>
  )
}

function ActorAndCause(props: { readonly event: EventBody }): JSX.Element {
  const path = usePath()
  return (
    <>
      {props.event.by ?? ''}
      <Show when={props.event.caused_by}>
        {(seq) => (
          <div class="quiet">
            caused by <Cause seq={seq()} />
          </div>
        )}
      </Show>
      <Show when={props.event.task_id !== null && props.event.decision}>
        {(number) => (
          <div>
            <A
              class="nowrap"
              href={path(`/tasks/${pathSegment(props.event.task_id ?? '')}?decision=${number()}`)}
            >
              why: decision {number()}
            </A>
          </div>
        )}
      </Show>
    </>
  )
}

/** The victims are the subject of a swap-out; its event names the task that it is for. */
function isForAnother(event: EventBody): boolean {
  return event.task_id !== null && !tasksOf(event).includes(event.task_id)
}

/** Links to an event on the same page, or to the page that starts with it. */
function Cause(props: { readonly seq: number }): JSX.Element {
  const [, setSearch] = useSearchParams()
  return (
    <a
      href={`?before=${props.seq + 1}`}
      onClick={(event) => {
        event.preventDefault()
        const row = document.getElementById(`event-${props.seq}`)
        if (row === null) setSearch({ before: String(props.seq + 1), kind: null, task: null, node: null })
        else row.focus()
      }}
    >
      {props.seq}
    </a>
  )
}

/** The start of a UUID is enough to read; the title has all of it. Names are shown in full. */
function shortId(id: string): string {
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(id) ? id.slice(0, 8) : id
}
