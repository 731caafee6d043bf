/** All tasks, in pages. */
import { A, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, Show, type JSX } from 'solid-js'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import type { TaskBody, TaskPage } from '../../../controller/api/tasks/schema.ts'
import { queryText } from '../../api/query-text.ts'
import { usePath } from '../../api/world.ts'
import { createColumnChoice } from '../../design/column-choice.tsx'
import { DataTable } from '../../design/data-table.tsx'
import { CsvButton } from '../../components/csv-button.tsx'
import { Pager } from '../../components/pager.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { TabLinks } from '../../design/tab-links.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { createSelection } from '../../design/selection.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { SubmitTask } from './submit-task.tsx'
import { FilterBar } from './filter-bar.tsx'
import { TASK_COLUMNS } from './task-columns.tsx'
import { BulkActions } from './bulk-actions.tsx'
import { FilterChips } from './filter-chips.tsx'
import { csvRequest, isFiltered, LISTS, taskListRequest, taskQueryOf, type ListName } from './task-filter.ts'

const TAB_NAMES: Readonly<Record<ListName, string>> = {
  running: 'Running',
  pending: 'Pending',
  succeeded: 'Succeeded',
  failed: 'Failed',
  cancelled: 'Cancelled',
  all: 'All',
}

export function Tasks(): JSX.Element {
  const { api, feed } = useCluster()
  const path = usePath()
  const [search, setSearch] = useSearchParams()
  const query = createMemo(() => taskQueryOf(search))
  const of = (): string => JSON.stringify(query())
  const tasks = useQuery(() => ({
    queryKey: ['tasks', 'list', of()],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const asked = query()
      return {
        of: JSON.stringify(asked),
        list: asked.state,
        page: await api.get<TaskPage>('/tasks', taskListRequest(asked), signal),
      }
    },
    staleTime: 2_000,
  }))
  const rows = (): readonly TaskBody[] => tasks.data?.page.items ?? []
  const selection = createSelection<TaskBody>({
    idOf: ({ id }) => id,
    nameOf: ({ name }) => name,
    shown: rows,
  })
  const list = (): ListName => tasks.data?.list ?? query().state
  const choice = createColumnChoice<TaskBody>(
    () => `tasks-${list()}`,
    () => TASK_COLUMNS[list()],
  )
  const tabs = () =>
    LISTS.map((list) => {
      const { cursor: _cursor, sort: _sort, state: _state, ...filters } = query()
      return {
        name: TAB_NAMES[list],
        href: path(`/tasks${queryText({ ...filters, tab: list })}`),
        isCurrent: query().state === list,
        count: countOf(feed.summary(), list),
      }
    })
  return (
    <div class="stack">
      <div class="head">
        <h1>Tasks</h1>
        <div class="row">
          {choice.chooser()}
          <CsvButton path="/tasks" query={csvRequest(query())} name="tasks" />
          <SubmitTask />
        </div>
      </div>
      <TabLinks name="Task lists" tabs={tabs()} />
      <FilterBar query={query()} />
      <FilterChips query={query()} />
      <BulkActions selection={selection} />
      <QueryState
        query={tasks}
        isEmpty={({ page }) =>
          page.items.length === 0 && page.next_cursor === null && query().cursor === null
        }
        whenEmpty={<Nothing isFiltered={isFiltered(query())} />}
      >
        {(answer) => (
          <section>
            <Show when={query().reason !== undefined && answer().page.total === null}>
              <p class="quiet">
                At most 1,000 pending tasks are examined per page, so a page may show only a few.{' '}
                <em>Next</em> continues with the rest.
              </p>
            </Show>
            <DataTable
              name="Tasks"
              columns={[selection.column, ...choice.columns()]}
              rows={answer().page.items}
              idOf={({ id }) => id}
              request={answer().of}
              sort={{
                by: query().sort,
                direction: query().sort === 'starved_seconds' ? 'descending' : 'ascending',
                onSort: (by) => setSearch({ sort: query().sort === by ? null : by, cursor: null }),
              }}
            />
            <Pager
              cursor={query().cursor}
              nextCursor={answer().page.next_cursor}
              shown={answer().page.items.length}
              total={answer().page.total}
              onGo={(cursor) => setSearch({ cursor })}
            />
          </section>
        )}
      </QueryState>
    </div>
  )
}

function Nothing(props: { readonly isFiltered: boolean }): JSX.Element {
  const path = usePath()
  return (
    <Show
      when={props.isFiltered}
      fallback={
        <EmptyState icon="list-todo" title="This list is empty.">
          Submit a task here, or with <code>headroom run --vram 16Gi -- python train.py</code>
        </EmptyState>
      }
    >
      <EmptyState icon="search-x" title="No tasks match these filters.">
        <A href={path('/tasks')}>Show running tasks</A>
      </EmptyState>
    </Show>
  )
}

function countOf(summary: SummaryBody | null, list: ListName): number | null {
  if (summary === null) return null
  const { by_list: lists, by_state: states } = summary.tasks
  switch (list) {
    case 'running':
    case 'pending':
      return lists[list]
    case 'succeeded':
      return states.completed
    case 'failed':
      return states.failed + states.lost
    case 'cancelled':
      return states.cancelled
    case 'all':
      return lists.running + lists.pending + lists.completed
  }
}
