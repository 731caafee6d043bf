/** The reasons why tasks wait, counted, each linked to these tasks. */
import { A } from '@solidjs/router'
import { Show, type JSX } from 'solid-js'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import { usePath } from '../../api/world.ts'
import { whole } from '../../format/figures.ts'
import { reasonWords } from '../../format/reasons.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'

type Reason = SummaryBody['pending_by_reason']['reasons'][number]

export function WaitingReasons(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const pending = () => feed.summary()?.pending_by_reason
  const columns: readonly Column<Reason>[] = [
    {
      name: 'Reason',
      cell: (row) => (
        <A href={path(`/tasks?tab=pending&reason=${row().reason}`)}>{reasonWords(row().reason)}</A>
      ),
    },
    {
      name: 'Tasks',
      isNumber: true,
      cell: (row) => `${pending()?.is_estimate === true ? '≈ ' : ''}${whole(row().tasks)}`,
    },
  ]
  return (
    <section class="card" aria-label="Wait reasons">
      <h2>Wait reasons</h2>
      <Show
        when={(pending()?.reasons.length ?? 0) > 0}
        fallback={<p class="quiet">{pending() === undefined ? 'Loading…' : 'No pending tasks.'}</p>}
      >
        <Table
          name="Number of tasks by reason"
          isHeadHidden
          columns={columns}
          rows={pending()?.reasons ?? []}
          idOf={({ reason }) => reason}
        />
        <Show when={pending()?.is_estimate === true}>
          <p class="quiet">
            Estimated for all {whole(pending()?.of)} pending tasks from a uniform sample of{' '}
            {whole(pending()?.counted)} tasks.
          </p>
        </Show>
      </Show>
    </section>
  )
}
