/** Running attempts that the store does not know: each is adopted as a task, or stopped. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, Show, type Accessor, type JSX } from 'solid-js'
import type { AttemptBody, AttemptListBody } from '../../../controller/api/tasks/attempt-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { DataTable } from '../../design/data-table.tsx'
import type { Column } from '../../design/table.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN, whole } from '../../format/figures.ts'
import { attemptName, vramWords, NO_RECORD, statedOwner } from '../../format/recovery.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Adopt } from './adopt.tsx'
import { Stop } from './stop.tsx'

/** Each request reads the records from the GPU servers. */
const AGAIN_MS = 10_000

export function Attempts(props: { readonly count: number }): JSX.Element {
  const { session } = useCluster()
  return (
    <section class="card" aria-label="Quarantined attempts">
      <h2>Quarantined attempts</h2>
      <p>
        These attempts run on nodes but are not in the store. They keep running and keep their VRAM until you
        adopt or stop them.
      </p>
      <Show when={session.whyNot('operator')} fallback={<List count={props.count} />}>
        {(why) => (
          <p>
            {whole(props.count)} in quarantine.{' '}
            <span class="quiet">You cannot view, adopt or stop them. {why()}</span>
          </p>
        )}
      </Show>
    </section>
  )
}

function List(props: { readonly count: number }): JSX.Element {
  const { api } = useCluster()
  const [settled, setSettled] = createSignal('')
  let line: HTMLParagraphElement | undefined
  const attempts = useQuery(() => ({
    // With the number of attempts, so that a change of it is shown at once.
    queryKey: ['recovery', 'attempts', props.count],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<AttemptListBody>('/attempts', {}, signal),
    refetchInterval: AGAIN_MS,
  }))
  /** The row disappears, and with it the button to which the dialog returns the focus. */
  const announce = (words: string): void => {
    setSettled(words)
    setTimeout(() => line?.focus())
  }
  const cells = columns(announce)
  return (
    <>
      <p role="status" tabindex="-1" ref={(element) => (line = element)} class="text">
        {settled()}
      </p>
      <QueryState
        query={attempts}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<p class="quiet">None.</p>}
      >
        {(list) => <DataTable name="Attempts" columns={cells} rows={list().items} idOf={idOf} />}
      </QueryState>
    </>
  )
}

function idOf({ node_id: nodeId, task_id: taskId, attempt }: AttemptBody): string {
  return `${nodeId} ${taskId} ${attempt}`
}

function columns(tell: (words: string) => void): readonly Column<AttemptBody>[] {
  return [
    { name: 'Name', help: 'Reported by the node', cell: (row) => <Name row={row} /> },
    { name: 'Actions', cell: (row) => <Actions row={row} onSettled={tell} /> },
    { name: 'Node', cell: (row) => <Where row={row} /> },
    {
      name: 'Owner',
      help: 'Reported by the node, unconfirmed',
      cell: (row) => (
        <span class="text" title={row().record === null ? NO_RECORD : undefined}>
          {statedOwner(row())}
          <Show when={row().record?.owner}>
            {' '}
            <span class="warn nowrap">unconfirmed</span>
          </Show>
        </span>
      ),
    },
    {
      name: 'Command',
      class: 'wide',
      cell: (row) => (
        <code class="text" title={row().record === null ? NO_RECORD : undefined}>
          {row().record?.command?.join(' ') ?? UNKNOWN}
        </code>
      ),
    },
    {
      name: 'VRAM',
      help: 'Counted as noswap',
      cell: (row) => <span class="nowrap">{vramWords(row())}</span>,
    },
    { name: 'In quarantine since', cell: (row) => <span class="nowrap">{clockTime(row().since)}</span> },
  ]
}

type Cell = { readonly row: Accessor<AttemptBody> }

function Name(props: Cell): JSX.Element {
  return (
    <>
      <strong class="name">{attemptName(props.row())}</strong>
      <span class="quiet text">
        {' '}
        {props.row().task_id}/{props.row().attempt}
      </span>
    </>
  )
}

function Where(props: Cell): JSX.Element {
  const path = usePath()
  return (
    <A class="name" href={path(`/nodes/${pathSegment(props.row().node_id)}`)}>
      {props.row().node_name}
    </A>
  )
}

function Actions(props: Cell & { readonly onSettled: (words: string) => void }): JSX.Element {
  const whyNot = (): string | null => {
    const by = props.row().stopped_by
    return by === null ? null : `Stopping, requested by ${by}.`
  }
  return (
    <div class="row">
      <Adopt attempt={props.row()} whyNot={whyNot()} onSettled={props.onSettled} />
      <Stop attempt={props.row()} whyNot={whyNot()} onSettled={props.onSettled} />
      <Show when={whyNot()}>{(why) => <span class="warn">{why()}</span>}</Show>
    </div>
  )
}
