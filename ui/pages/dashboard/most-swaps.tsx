/** The GPU with the most swap-outs in the last hour, and why its latest victim was swapped out. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { DecisionBody, DecisionPage } from '../../../controller/api/observe/decision-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { NodeLink } from '../../components/links.tsx'
import { plural } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import type { MapGpu } from './gpu-figures.ts'
import styles from './gpu-map.module.css'

const AGAIN_MS = 10_000
/** Latest swap-outs of its node among which one of the GPU is looked for. */
const LOOKED_AT = 50

export function MostSwaps(props: { readonly gpu: MapGpu | undefined }): JSX.Element {
  return (
    <Show
      when={props.gpu !== undefined && (props.gpu.swapOuts ?? 0) > 0 ? props.gpu : undefined}
      fallback={<p class={styles['most']}>No swap-outs in the last hour.</p>}
    >
      {(gpu) => (
        <p class={`text ${styles['most']}`} id="most-swaps">
          Most swap-outs: <NodeLink id={gpu().nodeId} name={gpu().nodeName} class="text" />{' '}
          {countWords(gpu())} <Latest gpu={gpu()} />
        </p>
      )}
    </Show>
  )
}

function countWords({ index, swapOuts }: MapGpu): string {
  return `GPU ${index}, ${plural(swapOuts ?? 0, 'swap-out', 'swap-outs')} in the last hour.`
}

function Latest(props: { readonly gpu: MapGpu }): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const decision = useQuery(() => ({
    queryKey: ['series', 'latest-swap-of', props.gpu.key],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<DecisionBody | null> => {
      const asked = { kind: 'swap_out', node: props.gpu.nodeId, limit: LOOKED_AT }
      const { items } = await api.get<DecisionPage>('/decisions', asked, signal)
      return items.find(({ gpus }) => gpus.includes(props.gpu.index)) ?? null
    },
    refetchInterval: AGAIN_MS,
  }))
  return (
    <Show when={decision.data}>
      {(latest) => (
        <>
          Latest: {latest().sentence}{' '}
          <A href={path(`/tasks/${pathSegment(latest().task_id)}?decision=${latest().number}`)}>
            Why<span class="visually-hidden">: decision {latest().number}</span>
          </A>
        </>
      )}
    </Show>
  )
}
