/** The running tasks that got the smallest part of the GPU time that they wanted. */
import { useQuery } from '@tanstack/solid-query'
import type { JSX } from 'solid-js'
import type { TaskBody, TaskPage } from '../../../controller/api/tasks/schema.ts'
import { TaskLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { percent, seconds } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'

const SHOWN = 8

const COLUMNS: readonly Column<TaskBody>[] = [
  { name: 'Task', class: 'text', cell: (row) => <TaskLink id={row().id} name={row().name} /> },
  {
    name: 'GPU time lost',
    help: 'GPU time that the task wanted but did not get, summed over all its GPUs',
    isNumber: true,
    cell: (row) => seconds(row().starved_seconds),
  },
  {
    name: 'Starvation',
    help: 'GPU time lost, as a percentage of the GPU time that the task wanted',
    isNumber: true,
    cell: (row) => percent(row().starvation_percent.total),
  },
]

export function StarvedTasks(): JSX.Element {
  const { api } = useCluster()
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
          <Table name="Most starved tasks" columns={COLUMNS} rows={found()} idOf={({ id }) => id} />
        )}
      </QueryState>
    </section>
  )
}
