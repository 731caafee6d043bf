/** Columns of the table of owners. */
import { A } from '@solidjs/router'
import type { Accessor, JSX } from 'solid-js'
import type { OwnerBody } from '../../../controller/api/owners/schema.ts'
import { queryText } from '../../api/query-text.ts'
import { usePath } from '../../api/world.ts'
import { Since } from '../../components/ago.tsx'
import type { Column } from '../../design/table.tsx'
import { mib, seconds, whole } from '../../format/figures.ts'

/** The name of tasks that were submitted without authentication. */
const ANONYMOUS = 'anonymous'

interface TasksLinkProps {
  readonly owner: OwnerBody['owner']
  readonly tab: 'all' | 'running' | 'pending'
  readonly children: JSX.Element
}

/** Leads to the tasks of an owner; null: those without an owner. */
export function TasksLink(props: TasksLinkProps): JSX.Element {
  const path = usePath()
  const filter = () => (props.owner === null ? { without_owner: true } : { owner: props.owner })
  return <A href={path(`/tasks${queryText({ tab: props.tab, ...filter() })}`)}>{props.children}</A>
}

export function ownerColumns(): readonly Column<OwnerBody>[] {
  const linked = (row: Accessor<OwnerBody>, tab: TasksLinkProps['tab'], text: () => string): JSX.Element => (
    <TasksLink owner={row().owner} tab={tab}>
      {text()}
    </TasksLink>
  )
  return [
    {
      name: 'Owner',
      sort: 'name',
      class: 'text',
      cell: (row) => linked(row, 'all', () => row().owner ?? ANONYMOUS),
    },
    {
      name: 'Running',
      sort: 'running',
      isNumber: true,
      help: 'Placed tasks, including those that are swapped out',
      cell: (row) => linked(row, 'running', () => whole(row().tasks.running)),
    },
    {
      name: 'Swapped out',
      isNumber: true,
      help: 'Placed tasks that are swapped out',
      cell: (row) => whole(row().tasks.swapped_out),
    },
    {
      name: 'GPUs',
      sort: 'gpus',
      isNumber: true,
      help: 'GPUs of the placed tasks, each counted once per task',
      cell: (row) => whole(row().gpus),
    },
    {
      name: 'Resident VRAM',
      isNumber: true,
      help: 'Demand of the tasks that are resident or being swapped in or out',
      cell: (row) => mib(row().resident_mib),
    },
    {
      name: 'Swapped-out VRAM',
      isNumber: true,
      help: 'Demand of the swapped-out tasks',
      cell: (row) => mib(row().out_mib),
    },
    {
      name: 'Pending',
      sort: 'pending',
      isNumber: true,
      help: 'Pending tasks, including those on hold',
      cell: (row) => linked(row, 'pending', () => whole(row().tasks.pending)),
    },
    {
      name: 'On hold',
      isNumber: true,
      cell: (row) => whole(row().tasks.on_hold),
    },
    {
      name: 'Longest wait',
      isNumber: true,
      help: 'Longest wait among the pending tasks',
      cell: (row) => <Since at={row().longest_wait_since} />,
    },
    {
      name: 'GPU time lost',
      sort: 'lost',
      isNumber: true,
      help: 'GPU time that open tasks wanted but did not get: queue, swap and compute',
      cell: (row) => <Lost row={row()} />,
    },
  ]
}

function Lost(props: { readonly row: OwnerBody }): JSX.Element {
  return <span title={lostWords(props.row.lost)}>{seconds(props.row.lost.total_seconds)}</span>
}

/** `queue 5 s, swap 0 s, compute 1 min`. */
export function lostWords(lost: OwnerBody['lost']): string {
  const { queue_seconds: queue, swap_seconds: swap, compute_seconds: compute } = lost
  return `queue ${seconds(queue)}, swap ${seconds(swap)}, compute ${seconds(compute)}`
}
