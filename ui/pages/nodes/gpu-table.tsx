/** The GPUs of a node with their tasks. */
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { GpuBody, NodeBody } from '../../../controller/api/nodes/schema.ts'
import type { TaskBody, TaskPage } from '../../../controller/api/tasks/schema.ts'
import { TaskLink } from '../../components/links.tsx'
import { VramBar } from '../../components/vram-bar.tsx'
import { mib } from '../../format/figures.ts'
import { residencyWords } from '../../format/tasks.ts'
import { Table, type Column } from '../../design/table.tsx'
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
  const columns: readonly Column<GpuBody>[] = [
    { name: 'GPU', cell: (row) => row().index },
    { name: 'Model', class: 'text', cell: (row) => row().model },
    { name: 'VRAM', cell: (row) => <VramBar vram={row().vram} /> },
    { name: 'Used', isNumber: true, cell: (row) => mib(row().vram.used_mib) },
    { name: 'Allocated', isNumber: true, cell: (row) => mib(row().vram.committed_mib) },
    { name: 'Schedulable', isNumber: true, cell: (row) => mib(row().vram.effective_schedulable_mib) },
    { name: 'Physical', isNumber: true, cell: (row) => mib(row().vram.physical_mib) },
    { name: 'Tasks', class: 'text', cell: (row) => <GpuTasks gpu={row()} byId={byId()} /> },
  ]
  return (
    <section class="card" aria-labelledby="gpus">
      <h2 id="gpus">GPUs</h2>
      <Table name="GPUs" columns={columns} rows={props.node.gpus} idOf={({ index }) => index} />
    </section>
  )
}

function GpuTasks(props: {
  readonly gpu: GpuBody
  readonly byId: ReadonlyMap<string, TaskBody>
}): JSX.Element {
  return (
    <Show when={props.gpu.task_ids.length > 0} fallback={<span class="quiet">none</span>}>
      <For each={props.gpu.task_ids.slice(0, SHOWN_TASKS)}>
        {(id) => (
          <div>
            <TaskLink class="" id={id} name={props.byId.get(id)?.name ?? id} />
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
