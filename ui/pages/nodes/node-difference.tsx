/** The figures of one node before and after a change. */
import { Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../../controller/api/config/impact-schema.ts'
import { mib, percent } from '../../format/figures.ts'
import { Table } from '../../design/table.tsx'

type Figures = ImpactBody['nodes'][number]['before']

interface Row {
  readonly name: string
  readonly of: (figures: Figures) => number
  readonly isPercent?: boolean
}

const ROWS: readonly Row[] = [
  { name: 'Overcommit', of: (figures) => figures.overcommit_percent, isPercent: true },
  { name: 'Reserve per GPU', of: (figures) => figures.reserve_mib },
  { name: 'Schedulable VRAM', of: (figures) => figures.effective_schedulable_mib },
  { name: 'Commit limit', of: (figures) => figures.commit_limit_mib },
  { name: 'Over-committed', of: (figures) => figures.over_committed_mib },
  { name: 'Reserve deficit', of: (figures) => figures.reserve_deficit_mib },
]

export function NodeDifference(props: { readonly impact: ImpactBody; readonly nodeId: string }): JSX.Element {
  const node = () => props.impact.nodes.find(({ node_id: id }) => id === props.nodeId)
  return (
    <Show when={node()} fallback={<p>No changes on this node.</p>}>
      {(found) => (
        <Table
          name="This node, before and after"
          columns={[
            { name: 'This node', cell: (row) => row().name },
            { name: 'before', isNumber: true, cell: (row) => words(row(), row().of(found().before)) },
            { name: 'after', isNumber: true, cell: (row) => words(row(), row().of(found().after)) },
            {
              name: 'difference',
              isNumber: true,
              cell: (row) => difference(row(), row().of(found().after) - row().of(found().before)),
            },
          ]}
          rows={ROWS}
        />
      )}
    </Show>
  )
}

function words({ isPercent }: Row, value: number): string {
  return isPercent === true ? percent(value, 0) : mib(value)
}

function difference(row: Row, change: number): string {
  if (change === 0) return '0'
  return change > 0 ? `+${words(row, change)}` : `−${words(row, -change)}`
}
