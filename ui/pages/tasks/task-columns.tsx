import { A } from '@solidjs/router'
import { Show, type Accessor, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/schema/task.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import type { Column } from '../../components/data-table.tsx'
import { mib, percent, UNKNOWN } from '../../format/figures.ts'
import { askedWords, gpuWords, idleWords, reasonOf, residencyWords, usedMib } from '../../format/tasks.ts'
import { useCluster } from '../../state/cluster.tsx'

type Cell = { readonly row: Accessor<TaskBody> }

function Name(props: Cell): JSX.Element {
  const path = usePath()
  return (
    <A class="text" href={path(`/tasks/${part(props.row().id)}`)}>
      {props.row().name}
    </A>
  )
}

export function Where(props: { readonly task: TaskBody }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.task.placement} fallback={UNKNOWN}>
      {(placement) => (
        <>
          <A class="text" href={path(`/nodes/${part(placement().node_id)}`)}>
            {placement().node_name}
          </A>
          :{gpuWords(placement().gpus)}
        </>
      )}
    </Show>
  )
}

function Idle(props: { readonly row: TaskBody }): JSX.Element {
  const { now } = useCluster()
  return <>{idleWords(props.row, now())}</>
}

export const TASK_COLUMNS: readonly Column<TaskBody>[] = [
  { name: 'Name', cell: (row) => <Name row={row} /> },
  { name: 'State', cell: (row) => <>{row().held ? `${row().state}, held` : row().state}</> },
  { name: 'Residency', help: 'Where its bytes are: — while it is on no GPU', cell: (row) => <>{residencyWords(row())}</> },
  { name: 'Node:GPU', cell: (row) => <Where task={row()} /> },
  { name: 'VRAM asked', help: 'On each GPU', isNumber: true, cell: (row) => <>{askedWords(row())}</> },
  { name: 'VRAM used', help: 'Held in VRAM on each GPU now', isNumber: true, cell: (row) => <>{mib(usedMib(row()))}</> },
  { name: 'noswap', help: 'Whether it may never leave VRAM', cell: (row) => <>{row().noswap === 1 ? 'yes' : 'no'}</> },
  { name: 'Priority', isNumber: true, cell: (row) => <>P{row().priority}</> },
  { name: 'Idle', help: 'Since its last GPU use', isNumber: true, cell: (row) => <Idle row={row()} /> },
  {
    name: 'Starvation',
    help: '(demand − served) / demand since it was submitted',
    isNumber: true,
    cell: (row) => <>{percent(row().starvation_percent.total)}</>,
  },
  {
    name: 'Reason',
    cell: (row) => (
      <span class="text" title={row().wait?.sentence}>
        {reasonOf(row())}
      </span>
    ),
  },
]
