import { A } from '@solidjs/router'
import { Show, type Accessor, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { Since } from '../../components/ago.tsx'
import { Chip } from '../../design/chip.tsx'
import type { Column } from '../../design/table.tsx'
import { clockTime } from '../../format/clock.ts'
import { mib, percent, seconds, UNKNOWN, whole } from '../../format/figures.ts'
import {
  askedWords,
  gpuWords,
  idleWords,
  reasonOf,
  residencyWords,
  stateWords,
  toneOf,
  usedMib,
} from '../../format/tasks.ts'
import { useCluster } from '../../state/cluster.tsx'
import type { ListName } from './task-filter.ts'

type Cell = { readonly row: Accessor<TaskBody> }

function Name(props: Cell): JSX.Element {
  const path = usePath()
  return (
    <A class="name" href={path(`/tasks/${pathSegment(props.row().id)}`)}>
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
          <A class="name" href={path(`/nodes/${pathSegment(placement().node_id)}`)}>
            {placement().node_name}
          </A>
          <span class="nowrap">:{gpuWords(placement().gpus)}</span>
        </>
      )}
    </Show>
  )
}

function Idle(props: { readonly row: TaskBody }): JSX.Element {
  const { now } = useCluster()
  return <>{idleWords(props.row, now())}</>
}

/** From the first start to the end. */
function ranFor({ first_started_at: started, finished_at: ended }: TaskBody): string {
  return started === null || ended === null
    ? UNKNOWN
    : seconds(Math.max(0, Date.parse(ended) - Date.parse(started)) / 1000)
}

const NAME: Column<TaskBody> = { name: 'Name', sort: 'name', cell: (row) => <Name row={row} /> }
const STATE: Column<TaskBody> = {
  name: 'State',
  cell: (row) => <Chip tone={toneOf(row())}>{stateWords(row())}</Chip>,
}
const RESIDENCY: Column<TaskBody> = {
  name: 'Residency',
  help: 'Location of the memory of the task; — if the task is not placed',
  cell: (row) => <span class="nowrap">{residencyWords(row())}</span>,
}
const WHERE: Column<TaskBody> = { name: 'Node:GPU', cell: (row) => <Where task={row()} /> }
const ASKED: Column<TaskBody> = {
  name: 'VRAM requested',
  help: 'On each GPU',
  isNumber: true,
  cell: (row) => <>{askedWords(row())}</>,
}
const USED: Column<TaskBody> = {
  name: 'VRAM used',
  help: 'VRAM in use on each GPU now',
  isNumber: true,
  cell: (row) => <>{mib(usedMib(row()))}</>,
}
const NOSWAP: Column<TaskBody> = {
  name: 'noswap',
  help: 'Never swapped out',
  cell: (row) => <>{row().noswap === 1 ? 'yes' : 'no'}</>,
}
const PRIORITY: Column<TaskBody> = {
  name: 'Priority',
  sort: 'priority',
  isNumber: true,
  cell: (row) => <>P{row().priority}</>,
}
const IDLE: Column<TaskBody> = {
  name: 'Idle',
  help: 'Time since the last GPU use',
  isNumber: true,
  cell: (row) => (
    <span class="nowrap">
      <Idle row={row()} />
    </span>
  ),
}
const STARVATION: Column<TaskBody> = {
  name: 'Starvation',
  sort: 'starved_seconds',
  help: '(demand − served) ÷ demand since submission',
  isNumber: true,
  cell: (row) => <>{percent(row().starvation_percent.total)}</>,
}
const REASON: Column<TaskBody> = {
  name: 'Reason',
  help: 'Why the task waits, or why it ended',
  class: 'wide',
  cell: (row) => (
    <span class="text" title={row().wait?.sentence}>
      {reasonOf(row())}
    </span>
  ),
}
const OWNER: Column<TaskBody> = {
  name: 'Owner',
  help: 'Name of the token that submitted the task; — without authentication',
  cell: (row) => <span class="text">{row().owner ?? UNKNOWN}</span>,
}

const PLACED = [NAME, STATE, RESIDENCY, WHERE, ASKED, USED, NOSWAP, PRIORITY, IDLE, STARVATION]

const FINAL: readonly Column<TaskBody>[] = [
  NAME,
  STATE,
  { ...REASON, help: 'Why the task ended' },
  { name: 'Ended', cell: (row) => <span class="nowrap">{clockTime(row().finished_at)}</span> },
  {
    name: 'Ran for',
    help: 'Time from the first start to the end',
    isNumber: true,
    cell: (row) => <>{ranFor(row())}</>,
  },
  { name: 'Exit code', isNumber: true, cell: (row) => <>{row().exit_code ?? UNKNOWN}</> },
  ASKED,
  PRIORITY,
  { name: 'Swap-outs', isNumber: true, cell: (row) => <>{whole(row().swap_outs)}</> },
  STARVATION,
  OWNER,
]

/** The relevant columns of each list: a pending task is on no node, and a final one uses nothing. */
export const TASK_COLUMNS: Readonly<Record<ListName, readonly Column<TaskBody>[]>> = {
  running: [...PLACED, OWNER],
  pending: [
    NAME,
    {
      ...REASON,
      name: 'Wait reason',
      help: 'The first reason that applies; hover over it for the full sentence',
    },
    {
      name: 'Waited',
      help: 'Time since the task entered the queue',
      isNumber: true,
      cell: (row) => <Since at={row().pending_since} />,
    },
    {
      name: 'Position',
      help: 'In the queue',
      isNumber: true,
      cell: (row) => <>{whole(row().wait?.queue_position)}</>,
    },
    ASKED,
    NOSWAP,
    PRIORITY,
    STARVATION,
    OWNER,
  ],
  succeeded: FINAL,
  failed: FINAL,
  cancelled: FINAL,
  all: [...PLACED, REASON],
}
