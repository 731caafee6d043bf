/** The running tasks that got the smallest part of the GPU time that they wanted. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { TaskPage } from '../../../controller/api/schema/task.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { percent, seconds } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'

const SHOWN = 8

export function StarvedTasks(): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const tasks = useQuery(() => ({
    queryKey: ['tasks', 'starved'],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const { items } = await api.get<TaskPage>(
        '/tasks',
        { state: 'running', sort: 'starved_seconds', limit: SHOWN },
        signal,
      )
      return items.filter(({ starved_seconds: lost }) => lost > 0)
    },
    staleTime: 5_000,
  }))
  return (
    <section class="card" aria-label="Most starved tasks">
      <h2>Most starved tasks</h2>
      <QueryState
        query={tasks}
        isEmpty={(found) => found.length === 0}
        whenEmpty={<p class="quiet">No starved tasks.</p>}
      >
        {(found) => (
          <table>
            <thead>
              <tr>
                <th scope="col">Task</th>
                <th
                  scope="col"
                  class="number"
                  title="GPU time wanted and not served, over all GPUs of the task"
                >
                  GPU time lost
                </th>
                <th scope="col" class="number" title="In percent of the GPU time that it wanted">
                  starvation
                </th>
              </tr>
            </thead>
            <tbody>
              <For each={found()}>
                {(task) => (
                  <tr>
                    <td class="text">
                      <A class="name" href={path(`/tasks/${pathSegment(task.id)}`)}>
                        {task.name}
                      </A>
                    </td>
                    <td class="number">{seconds(task.starved_seconds)}</td>
                    <td class="number">{percent(task.starvation_percent.total)}</td>
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
