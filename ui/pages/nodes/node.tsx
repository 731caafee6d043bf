/**
 * One node: its details, its GPUs and their tasks, its overrides, the residency of the last hour, and its
 * charts.
 */
import { useParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { Crumbs } from '../../components/crumbs.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { usePageTitle } from '../../state/page-title.ts'
import { DrainState } from './drain-state.tsx'
import { GpuTable } from './gpu-table.tsx'
import { NodeActions } from './node-actions.tsx'
import { NodeCharts } from './node-charts.tsx'
import { NodeFacts } from './node-facts.tsx'
import { NodeStatus } from './node-status.tsx'
import { NodeNotices } from './node-notices.tsx'
import { OverrideEditor } from './override-editor.tsx'
import type { TaggedNode } from './override-state.ts'
import { ResidencyGantt } from './residency-gantt.tsx'

export default function Node(): JSX.Element {
  const params = useParams<{ id: string }>()
  // Another node gets a new page, so that nothing of one node is shown or done under the name of another.
  return (
    <Show when={params.id} keyed>
      {(id) => <NodePage id={id} />}
    </Show>
  )
}

function NodePage(props: { readonly id: string }): JSX.Element {
  const { api } = useCluster()
  const node = useQuery(() => ({
    queryKey: ['nodes', 'one', props.id],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<TaggedNode> => {
      const { body, etag } = await api.send<NodeBody>('GET', `/nodes/${pathSegment(props.id)}`, { signal })
      return { node: body, etag }
    },
    refetchInterval: 5_000,
  }))
  usePageTitle(() => node.data?.node.name)
  return (
    <div class="stack">
      <Crumbs path="/nodes" name="Nodes" />
      <div class="row">
        <h1 class="text">{node.data?.node.name ?? 'Node'}</h1>
        <Show when={node.data}>{(at) => <NodeStatus node={at().node} />}</Show>
      </div>
      <QueryState query={node}>
        {(at) => (
          <>
            <NodeActions node={at().node} />
            <NodeNotices node={at().node} />
            <DrainState node={at().node} />
            <NodeFacts node={at().node} />
            <GpuTable node={at().node} />
            <OverrideEditor at={at()} />
            <ResidencyGantt nodeId={props.id} gpuIndexes={at().node.gpus.map(({ index }) => index)} />
            <NodeCharts nodeId={props.id} />
          </>
        )}
      </QueryState>
    </div>
  )
}
