/** Nodes that are up with the longest swap queue, then those with the highest allocation. */
import { useQuery } from '@tanstack/solid-query'
import type { JSX } from 'solid-js'
import type { NodeBody, NodePage } from '../../../controller/api/nodes/schema.ts'
import { NodeLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { percent, whole } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { allocatedPercent } from './rankings.ts'

const SHOWN = 8

const COLUMNS: readonly Column<NodeBody>[] = [
  { name: 'Node', class: 'text', cell: (row) => <NodeLink id={row().node_id} name={row().name} /> },
  { name: 'Allocated', isNumber: true, cell: (row) => percent(allocatedPercent(row())) },
  { name: 'Waiting for VRAM', isNumber: true, cell: (row) => whole(row().queue_length) },
]

export function HotNodes(): JSX.Element {
  const { api } = useCluster()
  const nodes = useQuery(() => ({
    queryKey: ['nodes', 'hot'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<NodePage>('/nodes', { status: 'up', sort: 'load', limit: SHOWN }, signal),
    staleTime: 5_000,
  }))
  return (
    <section class="card" aria-label="Hottest nodes">
      <h2>Hottest nodes</h2>
      <QueryState
        query={nodes}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<p class="quiet">No node is up.</p>}
      >
        {(page) => (
          <Table name="Hottest nodes" columns={COLUMNS} rows={page().items} idOf={({ node_id: id }) => id} />
        )}
      </QueryState>
    </section>
  )
}
