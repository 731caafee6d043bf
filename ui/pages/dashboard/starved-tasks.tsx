/** Tasks that want a GPU and get the least of it, among the running ones that were looked at. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { TaskPage } from '../../../controller/api/schema/task.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { percent } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { mostStarved } from './rankings.ts'

export function StarvedTasks(): JSX.Element {
  const { api } = useCluster()
  const path = usePath()
  const tasks = useQuery(() => ({
    queryKey: ['tasks', 'starved'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<TaskPage>('/tasks', { state: 'running', limit: 200 }, signal),
    staleTime: 5_000,
  }))
  return (
    <section class="card">
      <h2>Most starved tasks</h2>
      <QueryState
        query={tasks}
        isEmpty={(page) => mostStarved(page.items).length === 0}
        whenEmpty={<p class="quiet">Nobody who runs is starved.</p>}
      >
        {(page) => (
          <>
            <table>
              <tbody>
                <For each={mostStarved(page().items)}>
                  {(task) => (
                    <tr>
                      <td class="text">
                        <A class="name" href={path(`/tasks/${part(task.id)}`)}>
                          {task.name}
                        </A>
                      </td>
                      <td class="number">{percent(task.starvation_percent.total)}</td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table>
            <Show when={page().next_cursor !== null}>
              <p class="quiet">Among the {page().items.length} newest that run.</p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}
