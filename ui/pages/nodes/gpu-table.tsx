/** The GPUs of a node with their tasks. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { GpuBody, NodeBody } from '../../../controller/api/schema/node.ts'
import type { TaskBody, TaskPage } from '../../../controller/api/schema/task.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { VramBar } from '../../components/vram-bar.tsx'
import { mib } from '../../format/figures.ts'
import { residencyWords } from '../../format/tasks.ts'
import { useCluster } from '../../state/cluster.tsx'

/** Per GPU; the others are counted. */
const SHOWN_TASKS = 12

/** Tasks placed on a node, limited to one page of the API. */
export function usePlacedTasks(nodeId: () => string) {
  const { api } = useCluster()
  return useQuery(() => ({
    queryKey: ['tasks', 'on-node', nodeId()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<TaskPage>('/tasks', { node: nodeId(), state: 'running', limit: 200 }, signal),
    staleTime: 2_000,
  }))
}

export function GpuTable(props: { readonly node: NodeBody }): JSX.Element {
  const tasks = usePlacedTasks(() => props.node.node_id)
  const byId = (): ReadonlyMap<string, TaskBody> =>
    new Map((tasks.data?.items ?? []).map((task) => [task.id, task]))
  return (
    <section class="card" aria-labelledby="gpus">
      <h2 id="gpus">GPUs</h2>
      <div class="scroll" tabindex="0" role="group" aria-label="GPUs">
        <table>
          <thead>
            <tr>
              <th scope="col">GPU</th>
              <th scope="col">Model</th>
              <th scope="col">VRAM</th>
              <th scope="col" class="number">
                used
              </th>
              <th scope="col" class="number">
                allocated
              </th>
              <th scope="col" class="number">
                schedulable
              </th>
              <th scope="col" class="number">
                physical
              </th>
              <th scope="col">Tasks</th>
            </tr>
          </thead>
          <tbody>
            <For each={props.node.gpus}>
              {(gpu) => (
                <tr>
                  <td>{gpu.index}</td>
                  <td class="text">{gpu.model}</td>
                  <td>
                    <VramBar vram={gpu.vram} />
                  </td>
                  <td class="number">{mib(gpu.vram.used_mib)}</td>
                  <td class="number">{mib(gpu.vram.committed_mib)}</td>
                  <td class="number">{mib(gpu.vram.effective_schedulable_mib)}</td>
                  <td class="number">{mib(gpu.vram.physical_mib)}</td>
                  <td class="text">
                    <GpuTasks gpu={gpu} byId={byId()} />
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </section>
  )
}

function GpuTasks(props: {
  readonly gpu: GpuBody
  readonly byId: ReadonlyMap<string, TaskBody>
}): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.gpu.task_ids.length > 0} fallback={<span class="quiet">none</span>}>
      <For each={props.gpu.task_ids.slice(0, SHOWN_TASKS)}>
        {(id) => (
          <div>
            <A href={path(`/tasks/${pathSegment(id)}`)}>{props.byId.get(id)?.name ?? id}</A>
            <Show when={props.byId.get(id)}>
              {(task) => <span class="quiet"> {residencyWords(task())}</span>}
            </Show>
          </div>
        )}
      </For>
      <Show when={props.gpu.task_ids.length > SHOWN_TASKS}>
        <div class="quiet">and {props.gpu.task_ids.length - SHOWN_TASKS} more</div>
      </Show>
    </Show>
  )
}
