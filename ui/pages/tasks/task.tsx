/** One task: its details, the explanation of its state, its history, and its actions. */
import { useParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { QueryState } from '../../components/query-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { Explanation } from './explanation.tsx'
import { Output } from './output.tsx'
import { SwapHistory } from './swap-history.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskFacts } from './task-facts.tsx'
import { Timeline } from './timeline.tsx'

export default function Task(): JSX.Element {
  const params = useParams<{ id: string }>()
  // Another task gets a new page, so that nothing of one task is shown or done under the name of another.
  return (
    <Show when={params.id} keyed>
      {(id) => <TaskPage id={id} />}
    </Show>
  )
}

function TaskPage(props: { readonly id: string }): JSX.Element {
  const { api } = useCluster()
  const task = useQuery(() => ({
    queryKey: ['tasks', 'one', props.id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<TaskBody>(`/tasks/${pathSegment(props.id)}`, {}, signal),
    refetchInterval: 5_000,
  }))
  return (
    <div class="stack">
      <h1 class="text">{task.data?.name ?? 'Task'}</h1>
      <QueryState query={task}>
        {(body) => (
          <>
            <TaskActions task={body()} />
            <TaskFacts task={body()} />
            <Explanation taskId={props.id} />
            <Timeline taskId={props.id} />
            <SwapHistory taskId={props.id} />
            <Output task={body()} />
          </>
        )}
      </QueryState>
    </div>
  )
}
