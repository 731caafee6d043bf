/** Nodes that know events that the store does not have, with the mark of the store. */
import { A } from '@solidjs/router'
import { Show, type JSX } from 'solid-js'
import type { RecoveryBody } from '../../../controller/api/tasks/attempt-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { DataTable } from '../../design/data-table.tsx'
import type { Column } from '../../design/table.tsx'
import { clockTime } from '../../format/clock.ts'
import { whole } from '../../format/figures.ts'
import { aheadWords } from '../../format/recovery.ts'

type Ahead = RecoveryBody['nodes_ahead'][number]

export function AheadNodes(props: { readonly state: RecoveryBody }): JSX.Element {
  const mark = () => props.state.store
  return (
    <section class="card" aria-label="Nodes ahead of the store">
      <h2>Nodes ahead of the store</h2>
      <p>
        Store: epoch <strong>{whole(mark().epoch)}</strong>, last event{' '}
        <strong>{whole(mark().event_seq)}</strong>.
      </p>
      <Show
        when={props.state.nodes_ahead.length > 0}
        fallback={
          <p class="quiet">
            None: the store has all events of the nodes that have reported since the controller started.
          </p>
        }
      >
        <DataTable
          name="Nodes ahead"
          columns={COLUMNS}
          rows={props.state.nodes_ahead}
          idOf={({ node_id: id }) => id}
        />
        <p>
          These nodes receive no commands, and their tasks keep running. Stop the controller and restore the
          newer data folder, or restore a backup. See “The store went back” in docs/operating.md.
        </p>
      </Show>
    </section>
  )
}

const COLUMNS: readonly Column<Ahead>[] = [
  { name: 'Node', cell: (row) => <Name row={row()} /> },
  { name: 'Reported epoch', isNumber: true, cell: (row) => <>{whole(row().epoch)}</> },
  { name: 'Last reported event', isNumber: true, cell: (row) => <>{whole(row().event_seq)}</> },
  { name: 'Reason', class: 'wide', cell: (row) => <>{aheadWords(row())}</> },
  { name: 'Since', cell: (row) => <span class="nowrap">{clockTime(row().since)}</span> },
]

function Name(props: { readonly row: Ahead }): JSX.Element {
  const path = usePath()
  return (
    <A class="name" href={path(`/nodes/${pathSegment(props.row.node_id)}`)}>
      {props.row.name ?? props.row.node_id}
    </A>
  )
}
