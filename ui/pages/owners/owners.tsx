/** Owners of open tasks: their usage, waiting tasks and unserved GPU time; the caller's own tasks on top. */
import { useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, Show, type JSX } from 'solid-js'
import type { OwnerListBody, OwnerSort } from '../../../controller/api/owners/schema.ts'
import { CsvButton } from '../../components/csv-button.tsx'
import { Pager } from '../../components/pager.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { FilterForm } from '../../design/filter-form.tsx'
import { DataTable } from '../../design/data-table.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { OwnTasks } from './own-tasks.tsx'
import { ownerColumns } from './owner-columns.tsx'
import { RoleTable } from './role-table.tsx'

const PAGE_ROWS = 100
const AGAIN_MS = 5_000
const SORTS: readonly OwnerSort[] = ['lost', 'gpus', 'running', 'pending', 'name']

export default function Owners(): JSX.Element {
  const { api } = useCluster()
  const [search, setSearch] = useSearchParams<{
    q?: string
    sort?: string
    order?: string
    cursor?: string
  }>()
  const query = createMemo(() => {
    const sort = SORTS.find((each) => each === search.sort) ?? 'lost'
    const order = search.order === 'asc' || search.order === 'desc' ? search.order : orderOf(sort)
    return { q: search.q ?? '', sort, order, cursor: search.cursor ?? '' }
  })
  const of = (): string => JSON.stringify(query())
  const owners = useQuery(() => ({
    queryKey: ['owners', of()],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const asked = of()
      const page = await api.get<OwnerListBody>('/owners', { ...query(), limit: PAGE_ROWS }, signal)
      return { of: asked, page }
    },
    staleTime: 2_000,
    refetchInterval: AGAIN_MS,
  }))
  const onSort = (by: string): void => {
    const { sort, order } = query()
    const next = by === sort ? (order === 'asc' ? 'desc' : 'asc') : orderOf(by as OwnerSort)
    setSearch({ sort: by, order: next, cursor: null })
  }
  return (
    <div class="stack">
      <div class="head">
        <h1>Owners</h1>
        <CsvButton path="/owners" query={{ q: query().q }} name="owners" />
      </div>
      <OwnTasks />
      <FilterForm name="Owners" active={query().q === '' ? 0 : 1}>
        <label>
          Name contains{' '}
          <input
            type="search"
            size="16"
            maxLength="200"
            value={query().q}
            onChange={(event) => setSearch({ q: event.currentTarget.value || null, cursor: null })}
          />
        </label>
      </FilterForm>
      <QueryState
        query={owners}
        isEmpty={({ page }) => page.total === 0}
        whenEmpty={
          <EmptyState
            icon="users"
            title={query().q === '' ? 'No owner has open tasks.' : 'No owner matches.'}
          >
            This list shows the owners of pending and running tasks.
          </EmptyState>
        }
      >
        {(answer) => (
          <section>
            <Limits of={answer().page.limits} />
            <DataTable
              name="Owners"
              columns={COLUMNS}
              rows={answer().page.items}
              idOf={({ owner }) => JSON.stringify(owner)}
              request={answer().of}
              sort={{
                by: query().sort,
                direction: query().order === 'asc' ? 'ascending' : 'descending',
                onSort,
              }}
            />
            <Pager
              cursor={query().cursor === '' ? null : query().cursor}
              nextCursor={answer().page.next_cursor}
              shown={answer().page.items.length}
              total={answer().page.total}
              onGo={(cursor) => setSearch({ cursor })}
            />
          </section>
        )}
      </QueryState>
      <RoleTable />
    </div>
  )
}

const COLUMNS = ownerColumns()

/** Largest figures first, names from A. */
function orderOf(sort: OwnerSort): 'asc' | 'desc' {
  return sort === 'name' ? 'asc' : 'desc'
}

function Limits(props: { readonly of: OwnerListBody['limits'] }): JSX.Element {
  const words = (): string | null => {
    const { pending_tasks: pending, placed_gpus: gpus } = props.of
    const parts = [
      ...(pending === null ? [] : [`${whole(pending)} pending tasks`]),
      ...(gpus === null ? [] : [`${whole(gpus)} GPUs for placed tasks`]),
    ]
    return parts.length === 0 ? null : `Limits per owner: ${parts.join(', ')}.`
  }
  return <Show when={words()}>{(text) => <p class="quiet">{text()}</p>}</Show>
}
