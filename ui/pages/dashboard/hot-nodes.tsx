/** Nodes with the most promised of what may be promised, and with a queue of their own. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import { firstNodes } from '../../api/first-nodes.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { percent, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { hottest } from './rankings.ts'

/** In order of registration. */
export const LOOKED_AT = 200

export function HotNodes(): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const nodes = useQuery(() => ({
    queryKey: ['nodes', 'hot'],
    queryFn: ({ signal }: { signal: AbortSignal }) => firstNodes(api, LOOKED_AT, signal),
    staleTime: 5_000,
  }))
  return (
    <section class="card">
      <h2>Hottest nodes</h2>
      <QueryState query={nodes} isEmpty={(found) => found.length === 0} whenEmpty={<p class="quiet">No node has registered.</p>}>
        {(found) => (
          <table>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col" class="number">
                  allocated
                </th>
                <th scope="col" class="number">
                  waiting for bytes
                </th>
              </tr>
            </thead>
            <tbody>
              <For each={hottest(found())}>
                {({ node, allocatedPercent }) => (
                  <tr>
                    <td class="text">
                      <A class="name" href={path(`/nodes/${part(node.node_id)}`)}>
                        {node.name}
                      </A>
                    </td>
                    <td class="number">{percent(allocatedPercent)}</td>
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
