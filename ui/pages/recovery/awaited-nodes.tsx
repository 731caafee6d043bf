/** Known nodes that have not reported since the start. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'

const NAMED = 20

export function AwaitedNodes(props: { readonly nodeIds: readonly string[] }): JSX.Element {
  return (
    <Show when={props.nodeIds.length > 0}>
      <h2>Nodes that have not reported</h2>
      <ul aria-label="Nodes that have not reported">
        <For each={props.nodeIds.slice(0, NAMED)}>{(id) => <Named id={id} />}</For>
      </ul>
      <Show when={props.nodeIds.length > NAMED}>
        <p class="quiet">And {whole(props.nodeIds.length - NAMED)} more.</p>
      </Show>
      <p>
        Start the GPU servers of these nodes. If a node is permanently lost, an administrator can finish the
        recovery without it.
      </p>
    </Show>
  )
}

function Named(props: { readonly id: string }): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const node = useQuery(() => ({
    queryKey: ['nodes', 'name', props.id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<NodeBody>(`/nodes/${pathSegment(props.id)}`, {}, signal),
  }))
  return (
    <li>
      <A class="name" href={path(`/nodes/${pathSegment(props.id)}`)}>
        {node.data?.name ?? props.id}
      </A>
    </li>
  )
}
