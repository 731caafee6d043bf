/** Nodes that somebody has to look at: those that do not answer, that are taken out of use, or whose GPUs hold more than they should. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, For, Show, type JSX } from 'solid-js'
import type { NodeBody, NodePage } from '../../../controller/api/schema/node.ts'
import { part } from '../../api/client.ts'
import { firstNodes } from '../../api/first-nodes.ts'
import { usePath } from '../../api/world.ts'
import { seconds, secondsSince, whole } from '../../format/figures.ts'
import { troubleWords } from '../../format/nodes.ts'
import { useCluster } from '../../state/cluster.tsx'
import { LOOKED_AT } from './hot-nodes.tsx'
import { troubled } from './rankings.ts'

const SILENT = ['unreachable', 'suspect'] as const
const SHOWN = 8

export function TroubledNodes(): JSX.Element {
  const { api, feed, now } = useCluster()
  const path = usePath()
  const down = (): number => {
    const nodes = feed.summary()?.nodes
    return nodes === undefined ? 0 : nodes.total - nodes.up
  }
  // The answer that the hottest nodes are chosen from.
  const first = useQuery(() => ({
    queryKey: ['nodes', 'hot'],
    queryFn: ({ signal }: { signal: AbortSignal }) => firstNodes(api, LOOKED_AT, signal),
    staleTime: 5_000,
  }))
  // Those that do not answer are found wherever they stand in the list; it is asked for only when there are any.
  const silent = useQuery(() => ({
    queryKey: ['nodes', 'silent', down()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      Promise.all(SILENT.map(async (status) => (await api.get<NodePage>('/nodes', { status, limit: SHOWN }, signal)).items)),
    enabled: down() > 0,
    staleTime: 5_000,
  }))
  const found = createMemo((): readonly NodeBody[] => troubled([...(down() > 0 ? (silent.data ?? []).flat() : []), ...(first.data ?? [])]))
  return (
    <section class="card" aria-label="Nodes in trouble" id="trouble">
      <h2>Nodes in trouble</h2>
      <Show
        when={found().length > 0}
        fallback={
          <p class="quiet">{first.data === undefined ? 'Loading…' : 'None: all answer, take tasks, and hold no more than they should.'}</p>
        }
      >
        <table>
          <tbody>
            <For each={found().slice(0, SHOWN)}>
              {(node) => (
                <tr>
                  <td>
                    <A class="name" href={path(`/nodes/${part(node.node_id)}`)}>
                      {node.name}
                    </A>
                  </td>
                  <td>
                    <span class={node.status === 'up' ? 'warn' : 'bad'}>{troubleWords(node).join('; ')}</span>
                    <Show when={node.status !== 'up'}>
                      <span class="quiet"> last seen {seconds(secondsSince(node.last_seen_at, now()))} ago</span>
                    </Show>
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
        <Show when={found().length > SHOWN}>
          <p class="quiet">
            And {whole(found().length - SHOWN)} more: <A href={path('/nodes')}>all nodes</A>
          </p>
        </Show>
      </Show>
    </section>
  )
}
