/** Nodes that are up with the longest swap queue, then those with the highest allocation. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { NodePage } from '../../../controller/api/schema/node.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { percent, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { allocatedPercent } from './rankings.ts'

const SHOWN = 8

export function HotNodes(): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
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
          <table>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col" class="number">
                  allocated
                </th>
                <th scope="col" class="number">
                  waiting for VRAM
                </th>
              </tr>
            </thead>
            <tbody>
              <For each={page().items}>
                {(node) => (
                  <tr>
                    <td class="text">
                      <A class="name" href={path(`/nodes/${pathSegment(node.node_id)}`)}>
                        {node.name}
                      </A>
                    </td>
                    <td class="number">{percent(allocatedPercent(node))}</td>
                    <td class="number">{whole(node.queue_length)}</td>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        )}
      </QueryState>
    </section>
  )
}
