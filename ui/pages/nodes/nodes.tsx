/** All nodes, in pages. */
import { A, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, For, Show, type Accessor, type JSX } from 'solid-js'
import type { NodeBody, NodePage } from '../../../controller/api/nodes/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { createColumnChoice } from '../../design/column-choice.tsx'
import { FilterForm } from '../../design/filter-form.tsx'
import { DataTable } from '../../design/data-table.tsx'
import type { Column } from '../../design/table.tsx'
import { CsvButton } from '../../components/csv-button.tsx'
import { Pager } from '../../components/pager.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { ServerLine } from '../../components/server-line.tsx'
import { VramBar } from '../../components/vram-bar.tsx'
import { mib, overcommitWords, whole } from '../../format/figures.ts'
import { conditionWords, CONDITIONS, gpuModels, groupWords } from '../../format/nodes.ts'
import { useCluster } from '../../state/cluster.tsx'
import { NodeActions } from './node-actions.tsx'
import { NodeStatus } from './node-status.tsx'

const PAGE_ROWS = 50
const STATUSES = ['up', 'suspect', 'unreachable', 'attention', ...CONDITIONS] as const
const SORTS = {
  registered: 'registration',
  name: 'name',
  load: 'load',
  allocated: 'allocated',
  used: 'used',
  swaps: 'swaps',
} as const

/** Unknown values are ignored. */
function sortOf(text: string | undefined): keyof typeof SORTS {
  return text !== undefined && Object.hasOwn(SORTS, text) ? (text as keyof typeof SORTS) : 'registered'
}

function filterWords(status: (typeof STATUSES)[number]): string {
  if (status === 'attention') return 'needs attention'
  return status === 'up' || status === 'suspect' || status === 'unreachable' ? status : conditionWords(status)
}

function Name(props: { readonly row: Accessor<NodeBody> }): JSX.Element {
  const path = usePath()
  return (
    <A class="name" href={path(`/nodes/${pathSegment(props.row().node_id)}`)}>
      {props.row().name}
    </A>
  )
}

const COLUMNS: readonly Column<NodeBody>[] = [
  { name: 'Name', cell: (row) => <Name row={row} /> },
  { name: 'Status', cell: (row) => <NodeStatus node={row()} /> },
  { name: 'Actions', cell: (row) => <NodeActions node={row()} /> },
  {
    name: 'Overcommit',
    cell: (row) => (
      <span class="nowrap">
        {overcommitWords(row().overcommit.override_percent, row().overcommit.effective_percent)}
      </span>
    ),
  },
  { name: 'GPUs', cell: (row) => <span class="text nowrap">{gpuModels(row())}</span> },
  {
    name: 'VRAM',
    help: 'Bars: allocated VRAM, with used VRAM inside. Solid line: physical; dashed line: schedulable',
    cell: (row) => <VramBar vram={row().vram} />,
  },
  {
    name: 'Used',
    help: 'Resident and foreign VRAM',
    isNumber: true,
    cell: (row) => <>{mib(row().vram.used_mib)}</>,
  },
  {
    name: 'Allocated',
    help: 'VRAM of placed tasks, whether resident or swapped out',
    isNumber: true,
    cell: (row) => <>{mib(row().vram.committed_mib)}</>,
  },
  { name: 'Physical', isNumber: true, cell: (row) => <>{mib(row().vram.physical_mib)}</> },
  {
    name: 'Schedulable',
    help: 'Physical VRAM × (1 + overcommit percentage / 100)',
    isNumber: true,
    cell: (row) => <>{mib(row().vram.effective_schedulable_mib)}</>,
  },
  {
    name: 'Swaps',
    help: 'Swap-outs and swap-ins since the controller started',
    isNumber: true,
    cell: (row) => <>{whole(row().swaps.outs + row().swaps.ins)}</>,
  },
  {
    name: 'Groups',
    cell: (row) => (
      <span class={row().groups.length === 0 ? 'nowrap' : 'text'}>{groupWords(row().groups)}</span>
    ),
  },
]

export default function Nodes(): JSX.Element {
  const { api } = useCluster()
  const [search, setSearch] = useSearchParams<{
    q?: string
    status?: string
    group?: string
    sort?: string
    cursor?: string
  }>()
  const query = createMemo(() => ({
    q: search.q ?? '',
    status: STATUSES.find((each) => each === search.status) ?? '',
    group: search.group ?? '',
    sort: sortOf(search.sort),
    cursor: search.cursor ?? '',
  }))
  const of = (): string => JSON.stringify(query())
  const nodes = useQuery(() => ({
    queryKey: ['nodes', 'list', of()],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const asked = of()
      return { of: asked, page: await api.get<NodePage>('/nodes', { ...query(), limit: PAGE_ROWS }, signal) }
    },
    staleTime: 2_000,
    refetchInterval: 5_000,
  }))
  const set = (name: string, value: string): void =>
    setSearch({ [name]: value === '' ? null : value, cursor: null })
  const choice = createColumnChoice<NodeBody>(
    () => 'nodes',
    () => COLUMNS,
  )
  const filters = () => ({ q: query().q, status: query().status, group: query().group })
  const isFiltered = (): boolean => query().q !== '' || query().status !== '' || query().group !== ''
  return (
    <div class="stack">
      <div class="head">
        <h1>Nodes</h1>
        <div class="row">
          {choice.chooser()}
          <CsvButton path="/nodes" query={filters()} name="nodes" />
        </div>
      </div>
      <FilterForm name="Nodes" active={Object.values(filters()).filter((value) => value !== '').length}>
        <label>
          Name contains{' '}
          <input
            type="search"
            size="16"
            maxLength="200"
            value={query().q}
            onChange={(event) => set('q', event.currentTarget.value)}
          />
        </label>
        <label>
          Group{' '}
          <input
            type="text"
            size="12"
            maxLength="200"
            value={query().group}
            onChange={(event) => set('group', event.currentTarget.value)}
          />
        </label>
        <label>
          Status{' '}
          <select value={query().status} onChange={(event) => set('status', event.currentTarget.value)}>
            <option value="">all</option>
            <For each={STATUSES}>{(status) => <option value={status}>{filterWords(status)}</option>}</For>
          </select>
        </label>
        <label>
          Sort{' '}
          <select value={query().sort} onChange={(event) => set('sort', event.currentTarget.value)}>
            <For each={Object.entries(SORTS)}>{([value, name]) => <option value={value}>{name}</option>}</For>
          </select>
        </label>
      </FilterForm>
      <QueryState
        query={nodes}
        isEmpty={({ page }) => page.items.length === 0 && query().cursor === ''}
        whenEmpty={
          <Show when={isFiltered()} fallback={<Nothing />}>
            <p class="card">
              No nodes match these filters.{' '}
              <button onClick={() => setSearch({ q: null, status: null, group: null })}>Clear filters</button>
            </p>
          </Show>
        }
      >
        {(answer) => (
          <section>
            <DataTable
              name="Nodes"
              columns={choice.columns()}
              rows={answer().page.items}
              idOf={({ node_id: id }) => id}
              request={answer().of}
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
    </div>
  )
}

function Nothing(): JSX.Element {
  return (
    <div class="card">
      <p>No GPU servers are registered yet.</p>
      <p>Start one on each GPU host, with the address of the broker and a unique name:</p>
      <ServerLine />
    </div>
  )
}
