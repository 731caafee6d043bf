/** Nodes that need an operator: counted by the controller over all nodes, the worst ones by name. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { NodeBody, NodePage } from '../../../controller/api/nodes/schema.ts'
import { usePath } from '../../api/world.ts'
import { Ago } from '../../components/ago.tsx'
import { NodeLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { whole } from '../../format/figures.ts'
import type { Freshness } from '../../api/freshness.ts'
import { conditionWords, CONDITIONS, troubleWords } from '../../format/nodes.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { useFreshness } from '../../state/freshness.ts'
import { useIsAhead } from '../../state/recovery.ts'
import { troubled } from './rankings.ts'

const SHOWN = 8

const COLUMNS: readonly Column<NodeBody>[] = [
  { name: 'Node', cell: (row) => <NodeLink id={row().node_id} name={row().name} /> },
  { name: 'Problems', cell: (row) => <Trouble node={row()} /> },
]

export function TroubledNodes(): JSX.Element {
  const { feed } = useCluster()
  const freshness = useFreshness()
  const nodes = () => feed.summary()?.nodes
  const alarms = () => feed.summary()?.alarms ?? []
  return (
    <section class="card" aria-label="Nodes that need attention" id="trouble">
      <h2>Nodes that need attention</h2>
      <Show when={nodes()} fallback={<p class="quiet">Loading…</p>}>
        {(counts) => (
          <Show
            when={counts().attention > 0}
            fallback={
              <p class="quiet">
                {noTroubleWords(counts().total, {
                  freshness: freshness(),
                  isBrokerAway: alarms().some(({ code }) => code === 'BROKER_AWAY'),
                })}
              </p>
            }
          >
            <Counts />
            <Worst />
          </Show>
        )}
      </Show>
    </section>
  )
}

interface Contact {
  readonly freshness: Freshness
  readonly isBrokerAway: boolean
}

/** No all-clear without contact to the controller, and from it to the nodes. */
function noTroubleWords(total: number, { freshness, isBrokerAway }: Contact): string {
  if (total === 0) return 'No nodes are registered yet.'
  if (freshness === 'silent') return 'Unknown: the controller does not respond.'
  if (isBrokerAway) return 'Unknown: the controller has no connection to the broker.'
  return total === 1
    ? 'None: the node responds, accepts tasks and is within its limits.'
    : `None: all ${whole(total)} nodes respond, accept tasks and are within their limits.`
}

/** Each condition with its number of nodes, linked to the list of these nodes. */
function Counts(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const held = () => CONDITIONS.filter((condition) => (feed.summary()?.nodes[condition] ?? 0) > 0)
  return (
    <ul class="row">
      <For each={held()}>
        {(condition) => (
          <li>
            <A href={path(`/nodes?status=${condition}`)}>
              {whole(feed.summary()?.nodes[condition])} {conditionWords(condition)}
            </A>
          </li>
        )}
      </For>
    </ul>
  )
}

function Worst(): JSX.Element {
  const { api, feed } = useCluster()
  const path = usePath()
  const counts = () => feed.summary()?.nodes
  const found = useQuery(() => ({
    queryKey: ['nodes', 'attention', JSON.stringify(counts())],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<readonly NodeBody[]> => {
      const of = async (status: string) =>
        (await api.get<NodePage>('/nodes', { status, limit: SHOWN }, signal)).items
      // Silent nodes come first, at any position in the list.
      const silent = (counts()?.silent ?? 0) > 0 ? await of('silent') : []
      return troubled([...silent, ...(silent.length < SHOWN ? await of('attention') : [])]).slice(0, SHOWN)
    },
    staleTime: 5_000,
  }))
  return (
    <QueryState query={found}>
      {(nodes) => (
        <>
          <Table
            name="Worst nodes"
            isHeadHidden
            columns={COLUMNS}
            rows={nodes()}
            idOf={({ node_id: id }) => id}
          />
          <Show when={(counts()?.attention ?? 0) > nodes().length}>
            <p class="quiet">
              And {whole((counts()?.attention ?? 0) - nodes().length)} more:{' '}
              <A href={path('/nodes?status=attention')}>show all</A>
            </p>
          </Show>
        </>
      )}
    </QueryState>
  )
}

function Trouble(props: { readonly node: NodeBody }): JSX.Element {
  const isAhead = useIsAhead()
  return (
    <>
      <span class={props.node.status === 'up' ? 'warn' : 'bad'}>
        {troubleWords(props.node, isAhead(props.node.node_id)).join('; ')}
      </span>
      <Show when={props.node.status !== 'up'}>
        <span class="quiet">
          {' '}
          last seen <Ago at={props.node.last_seen_at} />
        </span>
      </Show>
    </>
  )
}
